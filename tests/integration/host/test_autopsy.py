"""A real engine is killed with a request at work: the host saves what it knew, and it can be read again."""

import json
import os
import signal
import threading
from typing import Any

import httpx

from engine_host.core.diagnosis.shelf import LARGEST
from engine_host.protocol.bench.autopsy import AutopsyPage, Ending
from engine_host.protocol.endpoint.requests import RequestQuery
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import EngineState, RequestState, StopEngine
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import TelemetryQuery
from tests.integration.host.conftest import RunningHost, wait_for
from tests.integration.host_process import sndr

ASKED = "Xylophonic-question"
SECRET = "hush-hush-4711"
AT_WORK = {RequestState.PREFILL, RequestState.DECODE}


def test_an_engine_that_is_killed_with_a_request_at_work_has_an_autopsy(host: RunningHost) -> None:
    assert sndr("autopsy").out.startswith("No engine died.")
    engine = host.start(overrides=Overrides(context=1024, streams=2, variables=(f"ACCOUNT={SECRET}",)))
    assert engine.pid is not None
    url = host.client.call(ops.HOST).endpoint.url
    body: dict[str, Any] = {"model": engine.name, "prompt": "Hello", "max_tokens": 8}
    assert httpx.post(f"{url}/completions", json=body, timeout=60).status_code == 200

    def measured() -> bool:
        names = (f"engine.{engine.id}.memory", "ram.used")
        return len(host.client.call(ops.TELEMETRY, TelemetryQuery(names=names)).series) == len(names)

    wait_for(measured, "the first samples of the engine", 60)
    # It stands still, so that the request is at work however fast or slow this machine is.
    os.kill(engine.pid, signal.SIGSTOP)
    body |= {"prompt": ASKED, "user": ASKED}
    client = threading.Thread(target=lambda: httpx.post(f"{url}/completions", json=body, timeout=120))
    client.start()

    def at_work() -> bool:
        requests = host.client.call(endpoint_ops.REQUESTS, RequestQuery(engine=engine.id)).requests
        return any(request.state in AT_WORK for request in requests)

    wait_for(at_work, "the request at the engine")
    os.kill(engine.pid, signal.SIGKILL)
    client.join(60)
    assert not client.is_alive()
    host.until(engine.id, EngineState.FAILED)

    def listed() -> AutopsyPage | None:
        page = host.client.call(ops.AUTOPSIES)
        return page if page.autopsies else None

    page = wait_for(listed, "the record of its end")
    (entry,) = page.autopsies
    assert entry.engine == engine.id
    assert entry.ending in {Ending.KILLED, Ending.MAIN_MEMORY}
    assert page.unreadable == ()

    opened = host.client.call(ops.AUTOPSY, id=entry.id)
    record, reading = opened.record, opened.reading
    assert (record.exit_code, record.signal) == (-signal.SIGKILL, "SIGKILL")
    assert "SIGKILL" in reading.sentence
    assert record.engine.problem is not None
    assert reading.sentence == entry.sentence == record.engine.problem.message
    names = {series.name for series in record.series}
    assert {f"engine.{engine.id}.memory", "ram.used", "ram.total"} <= names
    assert [request.cut_off for request in record.requests] == [True, False]
    assert record.requests[1].generated_tokens
    assert record.engine.plan.context == 1024
    assert record.engine.last_lines
    assert record.fit is not None
    assert record.fit.devices
    assert any(part.source == "the engine's log" for part in reading.held)
    assert any(curve.name == "ram.used" for curve in reading.curve)

    path = host.folders.autopsies / f"{entry.id}.json"
    saved = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert ASKED.encode() not in saved
    assert SECRET.encode() not in saved
    assert len(saved) == entry.bytes < LARGEST

    told = sndr("autopsy", engine.name).out
    assert f"{engine.name} ({engine.id}) died" in told
    assert "What held memory" in told
    assert "its end cut off 1" in told
    assert json.loads(sndr("autopsy", entry.id[:-3], "--json").out)["record"]["signal"] == "SIGKILL"
    assert sndr("autopsy", "20010101", "--json").problem()["reason"] == "not_found"
    assert sndr("autopsy", entry.id, "--remove").code == 0
    assert not path.exists()
    assert host.client.call(ops.AUTOPSIES).autopsies == ()


def test_an_engine_that_was_stopped_has_none(host: RunningHost) -> None:
    engine = host.start()
    host.client.call(ops.STOP, StopEngine(), id=engine.id)
    host.until(engine.id, EngineState.UNLOADED)
    assert host.client.call(ops.AUTOPSIES).autopsies == ()
    assert not host.folders.autopsies.exists()
