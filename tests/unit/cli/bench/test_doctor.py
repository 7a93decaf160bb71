"""`sndr doctor` against a host of canned answers."""

from collections.abc import Callable

from engine_host.engines.vllm.log import explain_exit
from engine_host.protocol.engines import EngineState
from tests.unit.cli.fake_host import FakeHost
from tests.views.samples import host as samples

Sndr = Callable[..., tuple[int, str, str]]
KERNEL = (
    "(EngineCore pid=2) RuntimeError: CUDA error: no kernel image is available for execution on the device"
)
LINES = (*("INFO loading" for _ in range(20)), KERNEL, *("  File \x1b[2Jcore.py" for _ in range(20)))


def test_a_failed_start_is_told_with_its_decisive_lines(host: FakeHost, sndr: Sndr) -> None:
    problem = explain_exit(1, LINES, "m", "vLLM 0.32.0")
    failed = samples.engine(EngineState.FAILED, problem=problem, last_lines=LINES)
    host.answers["GET /v1/diagnosis"] = (200, {"seconds": 600.0, "busy": {}, "causes": []})
    host.answers["GET /v1/engines"] = (200, {"seq": 1, "engines": [failed.model_dump(mode="json")]})
    code, out, _ = sndr("doctor")
    assert code == 0
    assert "vLLM 0.32.0 holds no kernel for this generation of GPUs." in out
    assert KERNEL in out
    assert out.count("loading") == 2
    assert "\x1b" not in out
    assert f"$ sndr logs {failed.id}" in out
    assert f"$ sndr autopsy {failed.id}" in out
    refused = failed.model_copy(update={"stages": ()})
    host.answers["GET /v1/engines"] = (200, {"seq": 1, "engines": [refused.model_dump(mode="json")]})
    assert "sndr autopsy" not in sndr("doctor")[1], "without a process there was nothing to record"


def test_a_start_that_takes_its_time_is_well(host: FakeHost, sndr: Sndr) -> None:
    starting = samples.engine(EngineState.STARTING)
    host.answers["GET /v1/diagnosis"] = (200, {"seconds": 600.0, "busy": {"sndr-demo": 0.0}, "causes": []})
    host.answers["GET /v1/engines"] = (200, {"seq": 1, "engines": [starting.model_dump(mode="json")]})
    _, out, _ = sndr("doctor")
    assert "sndr-demo is starting and has not failed: Load the weights." in out
    assert "Minutes are normal" in out
    assert "The last start" not in out
