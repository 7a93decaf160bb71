"""The pin of vLLM of another machine, a setting of its engine host, set from here; nothing is installed."""

import json

import pytest

from engine_host.protocol.errors import Reason
from tests.integration.host_process import serving, sndr
from tests.integration.remote.machines import Machines

pytestmark = pytest.mark.timeout(300)


def test_the_pin_is_a_setting_there_and_comes_back(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNDR_SSH_CONFIG", str(machines.config))
    with serving(), machines.engine_host():
        assert sndr("host", "add", "gpu", "direct").code == 0
        shown = json.loads(sndr("host", "pin", "gpu", "--json").out)
        assert (shown["pin"], shown["before"]) == ("automatic", None)
        assert sndr("host", "pin", "gpu", "--back", "--json").problem()["reason"] == Reason.CONFLICT
        unknown = sndr("host", "pin", "gpu", "vllm", "$(id)", "--json").problem()
        assert unknown["reason"] == Reason.NOT_FOUND
        planned = json.loads(sndr("host", "pin", "gpu", "vllm", "0.26.0", "--dry-run", "--json").out)
        assert (planned["pin"], planned["before"]) == ("0.26.0-cuda", "automatic")
        assert sndr("--host", "gpu", "settings", "set", "engine.vllm", "0.26.0-cuda").code == 0
        assert sndr("--host", "gpu", "settings", "set", "engine.vllm_before", "automatic").code == 0
        refused = sndr("--host", "gpu", "run", "--demo", "--engine", "vllm", "--dry-run", "--json").problem()
        assert "0.26.0-cuda" in refused["message"], "starts there use it"
        assert json.loads(sndr("engine", "pin", "--json").out)["pin"] == "automatic", "here nothing changed"
        back = sndr("host", "pin", "gpu", "--back", "--json")
        assert back.code == 0, back.out
        shown = json.loads(sndr("host", "pin", "gpu", "--json").out)
        assert (shown["pin"], shown["before"]) == ("automatic", "0.26.0-cuda")
