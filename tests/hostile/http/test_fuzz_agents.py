"""The same hostile requests in the forms of agents, on either engine: Responses, Messages, middles, usage."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.daemon.http_server import HttpServer
from engine_host.gateway import Gateway, Target, bind_endpoint
from engine_host.protocol.engines import RequestState
from engine_host.protocol.events import EngineRequestEvent, EventBase
from tests.hostile import asked
from tests.hostile.http.answers import of_endpoint
from tests.hostile.http.cases import bodies, framing
from tests.hostile.http.cases.case import ENDPOINT, Case, Owed, head
from tests.hostile.http.tally import Tally, fuzz
from tests.hostile.rig.host import FAKE_SERVER

pytestmark = pytest.mark.fuzz
MODULES = (bodies, framing)
ENDED = {RequestState.DONE, RequestState.FAILED, RequestState.CANCELLED}


class Engines:
    """A directory with one engine, which is taken for a vLLM or for a llama.cpp."""

    def __init__(self, socket: str, *, of_vllm: bool) -> None:
        self._target = Target(
            "e1",
            "fake",
            16,
            4096,
            1000.0,
            socket=socket,
            usage_on_request=of_vllm,
            native_infill=not of_vllm,
            fim_tokens=("<pre>", "<suf>", "<mid>"),
        )

    def targets(self) -> list[Target]:
        """The running engine."""
        return [self._target]

    def starting(self) -> list[str]:
        """No other is on its way."""
        return []


@pytest.fixture
def engine(home: Path) -> Iterator[str]:
    """A FAKE engine as a process; its socket."""
    socket = str(home / "e.sock")
    arguments = ("--host", socket, "--alias", "fake", "--parallel", "16")
    process = subprocess.Popen(
        [sys.executable, "-I", str(FAKE_SERVER), *arguments], stdout=subprocess.DEVNULL
    )
    while not Path(socket).exists():
        time.sleep(0.01)
    yield socket
    process.kill()
    process.wait()
    Path(socket).unlink()


@pytest.mark.parametrize("of_vllm", [True, False])
def test_no_request_of_an_agent_gets_more_than_an_error_object(engine: str, of_vllm: bool) -> None:
    tally, states = Tally(), dict[str, RequestState]()

    def publish(event: EventBase) -> None:
        assert isinstance(event, EngineRequestEvent)
        states[event.request.id] = event.request.state

    async def go() -> None:
        gateway = Gateway(Engines(engine, of_vllm=of_vllm), publish)
        bound = bind_endpoint("127.0.0.1", 0)
        endpoint = HttpServer(gateway.app, bound.socket, name="endpoint")
        await endpoint.started()
        question = Case((head("GET", "/v1/models", b"Connection: close"),), Owed.OK)
        numbers = range(10**6, 10**6 + asked.fuzz_requests(1_600) // 8)
        await fuzz(bound.port, ENDPOINT, numbers, tally, of_endpoint(engine_runs=True), question)
        await gateway.aclose()
        await endpoint.close()

    assert MODULES
    asyncio.run(go())
    print(f"\n{tally.table()}\n{len(states)} of them reached the engine")
    assert not tally.faults, f"{len(tally.faults)} faults:\n" + "\n".join(tally.faults[:12])
    assert set(states.values()) <= ENDED
