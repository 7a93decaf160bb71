"""`sndr telemetry` with a host of canned answers."""

import json
from collections.abc import Callable
from pathlib import Path

from engine_host.cli.start.host import connected
from engine_host.cli.telemetry.recording import record
from engine_host.core.gpu_trace.format import check
from engine_host.protocol.host import RECORDED
from tests.unit.cli.fake_host import FakeHost
from tests.unit.cli.start.test_run import HOST
from tests.unit.core.gpu_trace.test_format import CARD, written
from tests.views.samples import host as samples

Sndr = Callable[..., tuple[int, str, str]]


def test_a_recording_is_a_whole_trace_and_is_written_over_nothing(
    host: FakeHost, sndr: Sndr, tmp_path: Path
) -> None:
    path = tmp_path / "day.trace"
    host.answers["GET /v1/host"] = (200, HOST)
    code, _, error = sndr("telemetry", "record", str(path))
    assert code == 4
    assert "There is no GPU to record" in error
    assert not path.exists()
    host.answers["GET /v1/host"] = (200, {**HOST, "gpus": [CARD.model_dump(mode="json")]})
    code, out, _ = sndr("telemetry", "record", str(path), "--seconds", "1", "--interval", "0.9", "--json")
    assert (code, json.loads(out)["moments"]) == (0, 2)
    assert check(path)[1] == 2
    before = path.read_bytes()
    code, _, error = sndr("telemetry", "record", str(path))
    assert (code, "is there already" in error) == (6, True)
    assert "Recording into" not in error
    assert path.read_bytes() == before
    code, out, _ = sndr("telemetry", "check", str(path))
    assert code == 0
    assert "2 moments" in out


def test_a_host_that_answers_slower_than_the_interval_is_recorded_on(host: FakeHost, tmp_path: Path) -> None:
    host.answers["GET /v1/host"] = (200, {**HOST, "gpus": [CARD.model_dump(mode="json")]})
    path = tmp_path / "day.trace"
    with connected() as client:
        recorded = record(client, path, seconds=0.1, interval=0.0, processes=False)
    assert recorded.moments == check(path)[1] > 1


def test_it_is_played_by_its_whole_path_and_stopped(host: FakeHost, sndr: Sndr, tmp_path: Path) -> None:
    path = written(tmp_path / "day.trace", (0.0, CARD))
    host.answers["PUT /v1/settings"] = (200, samples.settings().model_dump(mode="json"))
    code, out, _ = sndr("telemetry", "play", str(path))
    assert code == 0
    assert RECORDED in out
    assert sndr("telemetry", "stop")[0] == 0
    sent = [body["values"] for _, _, body in host.received if body]
    assert sent == [{"host.gpu_trace": str(path)}, {"host.gpu_trace": None}]
