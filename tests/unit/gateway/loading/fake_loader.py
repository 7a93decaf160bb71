"""A FAKE loader whose loads end when a test says so, and requests of each dialect for its model."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from engine_host.core.errors import HostError
from engine_host.gateway import Limits, Target
from engine_host.gateway.directory import UNLOADED
from engine_host.gateway.loading.loader import Load
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Problem, Reason
from tests.unit.asynchronous import until
from tests.unit.gateway.asking import CHAT, HELLO

QUICK = Limits(loading_note=0.05, queue=3)
FAILED = Problem(reason=Reason.ENGINE_START_FAILED, message="The engine <ended> \x1b[2J early.")
TEXTS: dict[str, dict[str, Any]] = {
    CHAT: HELLO,
    "/v1/completions": {"model": "m", "prompt": "hi"},
    "/v1/responses": {"model": "m", "input": "hi"},
    "/v1/messages": {"model": "m", "max_tokens": 4, "messages": [{"role": "user", "content": "hi"}]},
    "/api/chat": HELLO,
    "/completion": {"model": "m", "prompt": "hi"},
    "/tokenize": {"model": "m", "content": "hi"},
}


@dataclass(eq=False)
class FakeLoad:
    """A load that a test ends."""

    done: "asyncio.Future[None]"
    overrides: Overrides | None = None
    waiting: int = 0


@dataclass
class FakeLoader:
    """Loads m, when a test says so."""

    shown: Target
    load: FakeLoad | None = None
    joins: list[tuple[str, float | None, Overrides | None]] = field(default_factory=list)
    left: list[bool] = field(default_factory=list)
    touched: list[tuple[str, float | None]] = field(default_factory=list)
    unloaded: list[str] = field(default_factory=list)
    by_hand: bool = False

    def loadable(self) -> Sequence[Target]:
        return (self.shown,)

    def is_known(self, name: str) -> bool:
        return name == self.shown.name

    def join(
        self, name: str, keep_alive: float | None = None, overrides: Overrides | None = None
    ) -> FakeLoad:
        self.joins.append((name, keep_alive, overrides))
        self.load = self.load or FakeLoad(asyncio.get_running_loop().create_future(), overrides)
        self.load.waiting += 1
        return self.load

    def leave(self, load: Load, *, goes_on: bool = False) -> None:
        assert isinstance(load, FakeLoad)
        load.waiting -= 1
        self.left.append(goes_on)

    def touch(self, engine: str, keep_alive: float | None = None) -> None:
        self.touched.append((engine, keep_alive))

    def unload(self, name: str) -> None:
        if self.by_hand:
            raise HostError(Reason.CONFLICT, f"{name} was started by hand.")
        self.unloaded.append(name)


Work = Callable[[Any, FakeLoader, httpx.AsyncClient], Awaitable[None]]


def cold(world: Any, work: Work) -> None:
    """Do this where m does not run yet, and is loaded on demand."""

    async def go() -> None:
        loader = FakeLoader(Target("none", "m", 2, 4096, 1000.0, socket="", state=UNLOADED))
        async with world(limits=QUICK, loader=loader) as served:
            served.engine.go.set()
            served.later = served.running
            served.running = []
            async with httpx.AsyncClient(base_url=served.url, timeout=20) as client:
                await work(served, loader, client)

    asyncio.run(go())


async def waiting(loader: FakeLoader, count: int = 1) -> FakeLoad:
    """Return once so many wait."""
    await until(lambda: loader.load is not None and loader.load.waiting >= count)
    assert loader.load is not None
    return loader.load


def loaded(served: Any, load: FakeLoad) -> None:
    """End a load well."""
    served.running = served.later
    load.done.set_result(None)


def failed(load: FakeLoad) -> None:
    """End a load badly."""
    load.done.set_exception(HostError.from_problem(FAILED))
