"""`sndr setup`: what it says of a machine, what it recommends, and that nothing is started unasked."""

import json

from tests.unit.cli.fake_host import FakeHost
from tests.unit.cli.start.test_run import HOST
from tests.unit.cli.test_commands import Sndr
from tests.views.samples import host as samples

MODEL = samples.models().model_dump(mode="json")
VERDICTS = {"hardware": "this machine", "verdicts": [{"preset": "demo-llamacpp", "verdict": "fits"}]}


def test_it_tells_of_the_machine_and_starts_nothing_unasked(host: FakeHost, sndr: Sndr) -> None:
    host.answers["GET /v1/host"] = (200, HOST)
    host.answers["GET /v1/models"] = (200, MODEL)
    host.answers["GET /v1/servers"] = (200, samples.servers().model_dump(mode="json"))
    host.answers["POST /v1/presets/verdicts"] = (200, VERDICTS)
    code, out, _ = sndr("setup")
    assert code == 0
    assert "This machine" in out
    assert "1 of 1 presets fit here" in out
    assert "with this program" in out
    bundled = next(one for one in MODEL["models"] if one["origin"] == "bundled" and one["format"] == "GGUF")
    assert f"$ sndr run {bundled['id']}" in out
    told = json.loads(sndr("setup", "--json")[1])
    assert (told["recommended"], told["run"]) == (bundled["id"], None)
    assert not any(line.startswith("POST /v1/engines") for line, _, _ in host.received)
    host.answers["GET /v1/models"] = (200, {**MODEL, "models": []})
    code, _, err = sndr("setup", "--measure")
    assert code != 0
    assert "nothing to measure" in err
