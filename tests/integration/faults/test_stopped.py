"""SIGSTOP of a part, and of all as when a machine is suspended: nobody waits for ever, and all goes on."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.protocol.endpoint.requests import RequestQuery
from engine_host.protocol.engines import Engine, EngineState, StopEngine
from engine_host.protocol.errors import Reason
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from tests.conftest import processes_of
from tests.integration.host.conftest import RunningHost, alive, host, new_host, wait_for
from tests.integration.host_process import Ended, sndr

__all__ = ["host", "new_host"]
HOURS = 8 * 3600.0


def ask(host: RunningHost, engine: Engine, tokens: int = 4, timeout: float = 30.0) -> httpx.Response:
    """One question through the endpoint."""
    return httpx.post(
        f"http://127.0.0.1:{host.port}/v1/completions",
        json={"model": engine.name, "prompt": "def add(a, b):", "max_tokens": tokens, "ignore_eos": True},
        timeout=timeout,
        trust_env=False,
    )


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """These processes do nothing meanwhile."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in reversed(pids):
            if alive(pid):
                os.kill(pid, signal.SIGCONT)


def test_an_engine_that_was_stopped_goes_on_with_its_answer(host: RunningHost) -> None:
    engine = host.start()
    assert engine.pid is not None
    answers: list[httpx.Response] = []
    with stopped(engine.pid):
        asking = threading.Thread(target=lambda: answers.append(ask(host, engine)))
        asking.start()
        began = time.monotonic()
        assert host.client.call(ops.HOST).pid == host.process.pid
        assert host.engine(engine.id).state in {EngineState.READY, EngineState.BUSY}
        assert time.monotonic() - began < 2.0, "the host answers meanwhile"
        asking.join(0.5)
        assert not answers
    asking.join(30)
    assert answers[0].status_code == 200


def test_an_engine_that_was_stopped_can_be_ended(host: RunningHost) -> None:
    engine = host.start()
    assert engine.pid is not None
    with stopped(engine.pid):
        with pytest.raises(httpx.TimeoutException):
            ask(host, engine, timeout=0.5)
        began = time.monotonic()
        host.client.call(ops.STOP, StopEngine(now=True), id=engine.id)
        host.until(engine.id, EngineState.UNLOADED, seconds=15)
        assert time.monotonic() - began < 10.0
    assert not alive(engine.pid)
    assert host.start().state is EngineState.READY, "the next one starts"


def test_a_host_that_was_stopped_is_told_apart_from_none_and_goes_on(
    host: RunningHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = host.start()
    assert engine.pid is not None
    said: list[Ended] = []
    with stopped(host.process.pid):
        with monkeypatch.context() as patch, ControlClient(host.folders) as impatient:
            patch.setattr("engine_host.client.sync._ANSWER", 1.0)
            with pytest.raises(HostError) as caught:
                impatient.connect()
        assert caught.value.reason is Reason.HOST_GONE, "it is there, and does not answer in time"
        patient = threading.Thread(target=lambda: said.append(sndr("status")))
        patient.start()
        patient.join(1.5)
        assert alive(engine.pid)
    patient.join(30)
    assert said[0].code == 0, "a command that waited is answered"
    assert host.engine(engine.id).pid == engine.pid
    assert ask(host, engine).status_code == 200


def test_a_machine_that_was_suspended_goes_on_where_it_was(
    home: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """All processes stop, and it is eight hours later; Linux's monotonic clock stands still meanwhile."""
    offset = home / "offset"
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent / "clock"))
    monkeypatch.setenv("SNDR_TEST_CLOCK", str(offset))
    host = request.getfixturevalue("new_host")().connect()
    engine = host.start()
    assert ask(host, engine).status_code == 200
    everybody = [pid for pid, _ in processes_of(home)]
    assert len(everybody) >= 4, "host, reaper, engine and the writer of its log"
    with stopped(*everybody):
        offset.write_text(str(HOURS))
        time.sleep(0.5)
    assert ask(host, engine).status_code == 200
    now = host.engine(engine.id)
    assert (now.pid, now.state in {EngineState.READY, EngineState.BUSY}) == (engine.pid, True)
    assert now.readings is not None
    left = {pid for pid, _ in processes_of(home)}
    assert left == set(everybody), "nobody was replaced"
    requests = host.client.call(endpoint_ops.REQUESTS, RequestQuery(engine=engine.id)).requests
    assert len(requests) == 2
    host.client.call(ops.STOP, StopEngine(), id=engine.id)
    host.until(engine.id, EngineState.UNLOADED)
    assert not psutil.pid_exists(engine.pid or 0)
    wait_for(lambda: host.client.call(ops.JOBS).jobs[0].ended or None, "the job's end", 5)
