"""Models that a request loads, in a real host with real llama.cpp servers: waits, ends, room, failures."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.endpoint.on_demand import (
    NEVER,
    AddOnDemand,
    LoadOnDemand,
    OnDemandChange,
    OnDemandModel,
    OnDemandState,
)
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.events import OnDemandEvent
from engine_host.protocol.launch.plans import LaunchRequest, ServerChoice
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from engine_host.protocol.settings import SettingsChange
from tests.integration.host.conftest import DEMO, SMALL, RunningHost, trained_for_more, wait_for

NewHost = Callable[..., RunningHost]
# Enough for one start of the demo model, and not for another beside it.
FOR_ONE = 150 << 20
# Waits until it may go on, and fails where it is told to; then it is the real server.
SLOW = """#!/bin/sh
case "$*" in
*--model*)
    echo start >> "{home}/starts"
    while [ ! -e "{home}/go" ]; do sleep 0.05; done
    if [ -e "{home}/fail" ]; then echo "it was told to fail" >&2; exit 3; fi ;;
esac
exec "{python}" -m engine_host.engines.llamacpp.prebuilt_server "$@"
"""


def add(host: RunningHost, name: str, *, keep_alive: float = NEVER, **fields: Any) -> OnDemandModel:
    """Let requests load the demo model under this name."""
    pinned = fields.pop("pinned", False)
    launch = LaunchRequest.model_validate({"model": str(DEMO), "name": name, "overrides": SMALL} | fields)
    return host.client.call(
        endpoint_ops.ADD_ON_DEMAND, AddOnDemand(launch=launch, keep_alive=keep_alive, pinned=pinned)
    )


def now(host: RunningHost, name: str) -> OnDemandModel:
    return next(one for one in host.client.call(endpoint_ops.ON_DEMAND).models if one.name == name)


def until(host: RunningHost, name: str, state: OnDemandState) -> OnDemandModel:
    def look() -> OnDemandModel | None:
        found = now(host, name)
        return found if found.state is state else None

    return wait_for(look, f"{name} {state}")


def ask(host: RunningHost, model: str, **fields: Any) -> httpx.Response:
    headers = fields.pop("headers", {})
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, **fields}
    return httpx.post(
        f"http://127.0.0.1:{host.port}/v1/chat/completions",
        json=body,
        headers=headers,
        trust_env=False,
        timeout=60,
    )


def get(host: RunningHost, path: str) -> Any:
    return httpx.get(f"http://127.0.0.1:{host.port}{path}", trust_env=False, timeout=60).json()


def starts(host: RunningHost, name: str) -> int:
    return sum(one.name == name for one in host.client.call(ops.ENGINES).engines)


def changes(host: RunningHost, name: str) -> list[OnDemandChange]:
    """The changes of a model so far, in their order, but for its uses."""
    newest = host.client.call(ops.VERSION).seq
    found: list[OnDemandChange] = []
    for event in host.client.events(0):
        if isinstance(event, OnDemandEvent) and event.model.name == name:
            found += [] if event.change is OnDemandChange.USED else [event.change]
        if event.seq >= newest:
            break
    return found


class SlowServer:
    """A server of one's own that loads no model until it may."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.path = home / "slow-server"
        self.path.write_text(SLOW.format(home=home, python=sys.executable))
        self.path.chmod(0o755)

    def go(self, *, fail: bool = False) -> None:
        """Let it load, or fail."""
        if fail:
            (self.home / "fail").touch()
        (self.home / "go").touch()

    def begun(self) -> bool:
        """Tell whether a start has reached it."""
        return (self.home / "starts").exists()


@pytest.fixture
def slow(host: RunningHost, home: Path) -> SlowServer:
    """The host's starts with `server=own` wait until they may go on."""
    made = SlowServer(home)
    host.client.call(ops.CHANGE_SETTINGS, SettingsChange(values={"engine.own_server": str(made.path)}))
    return made


@contextmanager
def asking(host: RunningHost, model: str, count: int, **fields: Any) -> Iterator[list[Any]]:
    """Ask so often at once; the answers are there when the block has ended."""
    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(ask, host, model, **fields) for _ in range(count)]
        answers: list[Any] = []
        yield answers
        answers += [future.result() for future in futures]


def test_three_cold_requests_make_one_load_and_streams_get_pings(host: RunningHost, slow: SlowServer) -> None:
    add(host, "one", server=ServerChoice.OWN)
    assert get(host, "/v1/models")["data"][0]["status"] == {"value": "unloaded"}
    assert get(host, "/api/v0/models/one")["state"] == "not-loaded"
    assert (get(host, "/api/tags")["models"][0]["name"], get(host, "/api/ps")["models"]) == ("one", [])

    with asking(host, "one", 2, stream=True) as streams, asking(host, "one", 1) as whole:
        wait_for(lambda: now(host, "one").waiting == 3, "three that wait")
        wait_for(slow.begun, "the start")
        assert now(host, "one").state is OnDemandState.LOADING
        assert get(host, "/v1/models")["data"][0]["status"] == {"value": "loading"}
        time.sleep(2.5)  # Pings come after two seconds.
        slow.go()

    assert whole[0].json()["choices"][0]["message"]["content"]
    for stream in streams:
        assert stream.status_code == 200
        assert stream.text.startswith(": loading\n\n")
        assert stream.text.endswith("data: [DONE]\n\n")
        assert "error" not in stream.text
    assert starts(host, "one") == 1
    model = now(host, "one")
    assert (model.state, model.waiting, model.by_hand) == (OnDemandState.LOADED, 0, False)
    assert changes(host, "one") == [OnDemandChange.ADDED, OnDemandChange.REQUESTED, OnDemandChange.LOADED]


def test_an_idle_one_is_stopped_and_a_pinned_one_stays(host: RunningHost) -> None:
    add(host, "brief", keep_alive=0)
    add(host, "pinned", keep_alive=0, pinned=True)
    assert ask(host, "brief").is_success
    assert ask(host, "pinned").is_success
    until(host, "brief", OnDemandState.LOADABLE)
    wait_for(lambda: OnDemandChange.ENDED in changes(host, "brief"), "its end is told")
    assert OnDemandChange.IDLE in changes(host, "brief")
    assert now(host, "pinned").state is OnDemandState.LOADED
    assert ask(host, "brief").is_success, "and comes again"
    assert starts(host, "pinned") == 1


def test_ollamas_keep_alive_and_requests_without_a_prompt(host: RunningHost) -> None:
    add(host, "one", keep_alive=60)

    def generate(**fields: Any) -> Any:
        url = f"http://127.0.0.1:{host.port}/api/generate"
        answer = httpx.post(url, json={"model": "one:latest", **fields}, trust_env=False, timeout=60)
        assert answer.is_success, answer.text
        return answer.json()

    assert generate(keep_alive="5m")["done_reason"] == "load"
    model = now(host, "one")
    assert (model.state, model.keep_alive) == (OnDemandState.LOADED, 300)
    assert get(host, "/api/ps")["models"][0]["expires_at"] < "9999"
    assert generate(keep_alive=0)["done_reason"] == "unload"
    until(host, "one", OnDemandState.LOADABLE)
    wait_for(lambda: now(host, "one").keep_alive == 60, "the entry's own keep-alive again")


def test_room_is_made_by_the_one_used_longest_ago_and_never_by_one_started_by_hand(new_host: NewHost) -> None:
    program = (str(Path(__file__).with_name("small_memory.py")), str(FOR_ONE))
    host = new_host(program=program).connect()
    add(host, "one")
    add(host, "two")
    assert ask(host, "one").json()["model"] == "one"
    assert ask(host, "two").json()["model"] == "two"
    assert now(host, "two").state is OnDemandState.LOADED
    assert now(host, "one").state is OnDemandState.LOADABLE
    assert OnDemandChange.EVICTED in changes(host, "one")

    host.client.call(endpoint_ops.UNLOAD_ON_DEMAND, id="two")
    until(host, "two", OnDemandState.LOADABLE)
    third = host.launch(LaunchRequest(model=str(DEMO), name="three", overrides=SMALL))
    refused = ask(host, "one")
    assert refused.status_code == 503
    error = refused.json()["error"]
    assert (error["code"], error["src"]) == ("no_room", "sndr")
    assert "three" in error["message"]
    assert "retry-after" not in refused.headers
    problem = now(host, "one").problem
    assert problem is not None
    assert problem.reason is Reason.OUT_OF_MEMORY
    assert [one["name"] for one in problem.evidence["holders"]] == ["three"]
    assert problem.evidence["missing_by_device"]["memory"] > 0
    assert host.engine(third.id).state is EngineState.READY


def test_a_pinned_one_makes_no_room(new_host: NewHost) -> None:
    program = (str(Path(__file__).with_name("small_memory.py")), str(FOR_ONE))
    host = new_host(program=program).connect()
    add(host, "pinned", pinned=True)
    add(host, "other")
    assert ask(host, "pinned").is_success
    assert ask(host, "other").json()["error"]["code"] == "no_room"
    assert now(host, "pinned").state is OnDemandState.LOADED


def test_a_failed_start_is_told_to_all_who_wait(host: RunningHost, slow: SlowServer) -> None:
    add(host, "one", server=ServerChoice.OWN)
    with asking(host, "one", 2) as whole, asking(host, "one", 1, stream=True) as streams:
        wait_for(lambda: now(host, "one").waiting == 3, "three that wait")
        time.sleep(2.5)
        slow.go(fail=True)
    problem = now(host, "one").problem
    assert problem is not None
    assert problem.reason in {Reason.ENGINE_CRASHED, Reason.ENGINE_START_FAILED}
    for answer in whole:
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, problem.reason.value)
    frame = json.loads(streams[0].text.removeprefix(": loading\n\n").removeprefix("data: "))
    assert frame["error"]["code"] == problem.reason.value
    assert ask(host, "one").json()["error"]["code"] == problem.reason.value, "without another start"
    assert starts(host, "one") == 1


def test_clients_that_leave(host: RunningHost, slow: SlowServer) -> None:
    add(host, "one", server=ServerChoice.OWN)
    add(host, "two")

    def leave(model: str) -> None:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(
                f"http://127.0.0.1:{host.port}/v1/completions",
                json={"model": model, "prompt": "Hi", "max_tokens": 2},
                trust_env=False,
                timeout=httpx.Timeout(60, read=1.5),
            )

    leave("one")
    wait_for(slow.begun, "the start")
    leave("two")
    wait_for(lambda: OnDemandChange.NOT_WANTED in changes(host, "two"), "nobody wants it")
    slow.go()
    until(host, "one", OnDemandState.LOADED)
    assert starts(host, "two") == 0, "it waited for its turn"


def test_who_may_not_wait_is_told_when_to_come_again(host: RunningHost, slow: SlowServer) -> None:
    add(host, "one", server=ServerChoice.OWN)
    told = ask(host, "one", headers={"prefer": "wait=0"})
    assert (told.status_code, told.json()["error"]["code"]) == (503, "loading")
    assert int(told.headers["retry-after"]) > 0
    slow.go()
    until(host, "one", OnDemandState.LOADED)
    assert ask(host, "one").is_success


def test_entries_outlive_the_host_and_loads_take_settings_of_their_own(
    host: RunningHost, new_host: NewHost
) -> None:
    add(host, "one", keep_alive=60)
    assert host.end() == 0
    host = new_host().connect()
    wait_for(lambda: get(host, "/v1/models")["data"], "it is listed again")
    detail = host.client.call(endpoint_ops.ON_DEMAND_MODEL, id="one")
    context = next(one for one in detail.settings if one.name == "context")
    assert (context.kind, context.value, context.given, context.unit) == ("whole", 1024, True, "tokens")
    assert (context.minimum, context.step) == (128, 1)

    asked = LoadOnDemand(overrides=Overrides(context=512), keep_alive=NEVER)
    host.client.call(endpoint_ops.LOAD_ON_DEMAND, asked, id="one")
    loaded = until(host, "one", OnDemandState.LOADED)
    assert loaded.engine is not None
    assert host.engine(loaded.engine).plan.context == 512
    assert loaded.launch.overrides.context == 1024, "for this load alone"
    # 300 becomes 512 as well, so that is what runs.
    for size in (512, 300):
        again = LoadOnDemand(overrides=Overrides(context=size))
        assert host.client.call(endpoint_ops.LOAD_ON_DEMAND, again, id="one").state is OnDemandState.LOADED
        told = httpx.post(
            f"http://127.0.0.1:{host.port}/api/v1/models/load",
            json={"model": "one", "context_length": size, "echo_load_config": True},
            trust_env=False,
        )
        assert told.json()["load_config"]["context_length"] == 512
    asked = LoadOnDemand(overrides=Overrides(context=256))
    with pytest.raises(HostError) as other:
        host.client.call(endpoint_ops.LOAD_ON_DEMAND, asked, id="one")
    assert other.value.reason is Reason.CONFLICT
    host.client.call(endpoint_ops.REMOVE_ON_DEMAND, id="one")
    assert host.engine(loaded.engine).state is EngineState.READY
    with pytest.raises(HostError) as unknown:
        host.client.call(endpoint_ops.UNLOAD_ON_DEMAND, id="one")
    assert unknown.value.reason is Reason.NOT_FOUND


@pytest.mark.parametrize("name", ["a/b", "a:latest"])
def test_names_that_clients_cannot_use_are_refused(host: RunningHost, name: str) -> None:
    with pytest.raises(HostError) as refused:
        add(host, name)
    assert refused.value.reason is Reason.SETTING_INVALID
    assert refused.value.problem.fix is not None


def test_a_start_that_never_fits_is_refused_before_a_request_comes(host: RunningHost, tmp_path: Path) -> None:
    model = tmp_path / "far.gguf"
    model.write_bytes(trained_for_more(DEMO.read_bytes()))
    with pytest.raises(HostError) as refused:
        add(host, "one", model=str(model), overrides=Overrides(context=8_000_000, streams=64))
    assert refused.value.reason in {Reason.OUT_OF_MEMORY, Reason.CONTEXT_TOO_LONG}
    assert not host.client.call(endpoint_ops.ON_DEMAND).models
