"""Two real llama.cpp servers of one host: both answer, each is stopped, kept and found by itself."""

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.endpoint.requests import RequestQuery
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import Engine, EngineState, StopEngine
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.fit import FitRequest
from engine_host.protocol.launch.plans import (
    ALL_ENGINES,
    MAIN_MEMORY,
    LaunchPlan,
    LaunchRequest,
    StartRequest,
)
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from tests.integration.host.conftest import DEMO, SMALL, RunningHost, alive, files_below, wait_for

NewHost = Callable[..., RunningHost]


def request(name: str, **fields: Any) -> LaunchRequest:
    """The bundled model under this name."""
    return LaunchRequest.model_validate({"model": str(DEMO), "name": name, "overrides": SMALL} | fields)


def plan(host: RunningHost, name: str, **fields: Any) -> LaunchPlan:
    return host.client.call(ops.PLAN, request(name, **fields))


def both(host: RunningHost, **fields: Any) -> tuple[Engine, Engine]:
    return host.launch(request("one", **fields)), host.launch(request("two", **fields))


def ask(host: RunningHost, model: str) -> str:
    """The model that answers a question through the endpoint."""
    answer = httpx.post(
        f"http://127.0.0.1:{host.port}/v1/chat/completions",
        json={"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 16},
        trust_env=False,
        timeout=60,
    )
    assert answer.is_success, answer.text
    return str(answer.json()["model"])


def test_both_answer_at_once_and_one_serves_on_when_the_other_is_stopped(host: RunningHost) -> None:
    one, two = both(host)
    assert two.plan.beside[0].id == one.id
    assert [need.device for need in two.plan.needs] == [MAIN_MEMORY]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda name: ask(host, name), ["one", "two"] * 4)) == ["one", "two"] * 4
    # Each has its own log, numbers and requests.
    for engine in (one, two):
        read = wait_for(lambda: host.engine(engine.id).readings, "its readings")  # noqa: B023
        assert read.memory
        assert read.memory_of_files is not None
        assert len(host.client.call(endpoint_ops.REQUESTS, RequestQuery(engine=engine.id)).requests) == 4
        assert (host.folders.logs / "engines" / f"{engine.id}.log").exists()

    host.client.call(ops.STOP, StopEngine(), id="one")
    host.until(one.id, EngineState.UNLOADED)

    assert ask(host, "two") == "two"
    assert (alive(one.pid or 0), alive(two.pid or 0)) == (False, True)


def test_a_second_one_is_judged_beside_the_first(host: RunningHost) -> None:
    one = host.launch(request("one"))
    beside = plan(host, "two")
    assert [ref.id for ref in beside.beside] == [one.id]
    threads = next(setting for setting in beside.settings if setting.name == "threads")
    assert "one computes on this processor too" in threads.why
    taken = plan(host, "one", instead_of=())
    assert [finding.id for finding in taken.findings if finding.severity == "error"] == ["name_taken"]
    fits = host.client.call(ops.FIT, FitRequest(model=str(DEMO), context=1024))
    assert [ref.id for ref in fits.beside] == [one.id]


def test_a_start_takes_the_place_of_those_that_it_names(host: RunningHost) -> None:
    one, two = both(host)
    again = plan(host, "one", overrides=Overrides(context=512, streams=1))
    assert [ref.id for ref in again.instead_of] == [one.id]
    assert "context: 1024 → 512" in again.changes
    assert again.command.endswith("--instead-of one")
    with pytest.raises(HostError) as refused:
        host.client.call(ops.START, StartRequest(plan=again.id, replace=False))
    assert refused.value.reason is Reason.CONFLICT

    newer = host.until(host.client.call(ops.START, StartRequest(plan=again.id)).id, EngineState.READY)

    assert host.engine(one.id).state is EngineState.UNLOADED
    assert host.engine(two.id).state is EngineState.READY
    with pytest.raises(HostError) as stale:
        host.client.call(ops.START, StartRequest(plan=again.id))
    assert stale.value.reason is Reason.PLAN_STALE, "the same plan again would end the engine of it"

    third = host.launch(request("three", instead_of=(ALL_ENGINES,)))
    assert {ref.name for ref in third.plan.instead_of} == {"one", "two"}
    assert not alive(two.pid or 0)
    assert not alive(newer.pid or 0)


def test_two_kept_engines_are_taken_up_by_the_next_host(host: RunningHost, new_host: NewHost) -> None:
    engines = both(host, keep=True)
    host.end(signal.SIGKILL)
    wait_for(lambda: not host.folders.socket.exists(), "the control socket's end", 10)
    assert all(alive(engine.pid or 0) for engine in engines)

    again = new_host().connect()

    for engine in engines:
        found = again.until(engine.id, EngineState.READY)
        assert (found.adopted, found.pid) == (True, engine.pid)
        assert ask(again, engine.name) == engine.name
    third = plan(again, "three")
    assert {ref.name for ref in third.beside} == {"one", "two"}
    for engine in engines:
        again.client.call(ops.STOP, StopEngine(), id=engine.id)
        again.until(engine.id, EngineState.UNLOADED)
        assert not alive(engine.pid or 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_end_of_the_host_ends_both(host: RunningHost, number: signal.Signals) -> None:
    engines = both(host)
    host.end(number)
    for engine in engines:
        wait_for(lambda: not alive(engine.pid or 0), f"the end of {engine.name}", 10)  # noqa: B023
    wait_for(lambda: not host.folders.run.exists() or not files_below(host.folders.run), "empty folder", 10)
