"""`sndr doctor` with a real host and a real engine at work, and after a start that failed."""

import json
import os
import signal
import threading

import httpx

from engine_host.protocol.bench.diagnosis import DiagnosisQuery, SlowReason
from engine_host.protocol.engines import EngineState
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import TelemetryQuery
from tests.integration.host.conftest import SMALL, RunningHost, wait_for
from tests.integration.host_process import sndr


def test_without_an_engine_it_says_so(host: RunningHost) -> None:
    assert host.process.poll() is None
    ended = sndr("doctor")
    assert ended.code == 0
    assert "No engine runs" in ended.out
    assert sndr("doctor", "nobody", "--json").problem()["reason"] == "not_found"
    assert sndr("doctor", "--minutes", "0").code == 2


def test_one_short_question_is_work_and_has_a_wait(host: RunningHost) -> None:
    engine = host.start()
    url = host.client.call(ops.HOST).endpoint.url
    body = {"model": engine.name, "prompt": "Hello", "max_tokens": 8, "stream": True}
    assert httpx.post(f"{url}/completions", json=body, timeout=60).status_code == 200

    def waits() -> bool:
        asked = TelemetryQuery(names=(f"engine.{engine.id}.ttft",))
        return bool(host.client.call(ops.TELEMETRY, asked).series)

    wait_for(waits, "the time to the first token", 20)
    told = json.loads(sndr("doctor", "--json").out)
    assert told["busy"][engine.name] > 0
    if told["too_little"]:
        assert (told["too_little"], told["causes"]) == ([engine.name], [])


def test_a_queue_is_seen_and_named_before_a_setting_that_costs(host: RunningHost) -> None:
    engine = host.start(overrides=SMALL.model_copy(update={"flash_attention": "off"}))
    url = host.client.call(ops.HOST).endpoint.url
    assert url is not None
    assert engine.pid is not None
    wait_for(lambda: host.engine(engine.id).readings, "its first readings")
    body = {"model": engine.name, "prompt": "Tell a story.", "max_tokens": 8}

    def judged() -> bool:
        asked = DiagnosisQuery(engine=engine.name)
        return any(one.reason is SlowReason.QUEUED for one in host.client.call(ops.DIAGNOSE, asked).causes)

    # It stands still, so that there is a queue however fast this machine is.
    os.kill(engine.pid, signal.SIGSTOP)
    asking = [
        threading.Thread(target=lambda: httpx.post(f"{url}/completions", json=body, timeout=120))
        for _ in range(6)
    ]
    for one in asking:
        one.start()
    try:
        wait_for(judged, "a queue that was judged", 60)
    finally:
        os.kill(engine.pid, signal.SIGCONT)
    told = json.loads(sndr("doctor", engine.name, "--json").out)
    text = sndr("doctor", engine.name).out
    for one in asking:
        one.join(60)
    assert told["too_little"] == []
    reasons = [cause["reason"] for cause in told["causes"]]
    assert "queued" in reasons
    assert reasons[-1] == "attention_backend", "read off the engine's own log; its cost is not measured"
    assert told["causes"][-1]["share"] is None
    assert "--set flash_attention=auto" in text
    assert told["busy"][engine.name] > 0
    assert "Requests waited for a free stream" in text
    assert f"$ sndr fit {engine.plan.model} --streams" in text
    assert all("GPU" not in one for one in told["not_measured"]), "why there is none is told by itself"


def test_an_engine_that_ended_by_itself_is_told_with_its_log(host: RunningHost) -> None:
    engine = host.start()
    assert engine.pid is not None
    os.kill(engine.pid, signal.SIGABRT)
    host.until(engine.id, EngineState.FAILED)
    failed = json.loads(sndr("doctor", "--json").out)["failed"]
    assert (failed["id"], failed["problem"]["reason"]) == (engine.id, "engine_crashed")
    text = sndr("doctor").out
    assert f"{engine.name} ({engine.id}) died while it served" in text
    assert host.engine(engine.id).decisive_lines[-1] in text
    assert f"$ sndr logs {engine.id}" in text
