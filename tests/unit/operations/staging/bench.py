"""Promotions and roll-backs with real routes, jobs and records; machines, engines and trials are FAKE."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.paths import Folders
from engine_host.core.store import Store
from engine_host.gateway.routing.book import RouteBook
from engine_host.operations.staging.places import Place, Places
from engine_host.operations.staging.promote import PromotionOperations
from engine_host.operations.staging.promoted import PromotionBook
from engine_host.operations.staging.rollback import RollbackOperations
from engine_host.protocol.endpoint.routes import CutOver, Route, RouteTargets
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job
from engine_host.protocol.launch.plans import LaunchPlan, ServerChoice, StartRequest
from engine_host.protocol.remote.hosts import AddRemoteHost, RemoteMode
from engine_host.protocol.remote.staging import PromoteOnHost
from engine_host.remote.book import HostBook


def planned(name: str, model: str = "m", preset: str = "") -> LaunchPlan:
    """A plan that nothing starts."""
    return LaunchPlan(
        id=f"plan-{name}",
        fingerprint="f",
        created_at=0,
        model=model,
        model_path=f"/models/{model}",
        preset=preset,
        name=name,
        engine="fake",
        server=ServerChoice.OWN,
        server_version="1",
        argv=(),
        environment={},
        settings=(),
        streams=1,
        context=128,
        speculation="off",
        keep=False,
        findings=(),
        command=f"sndr run {name}",
    )


class FakePlace:
    """A machine whose engines are in the state that a test gives them, newest first as a manager has them."""

    def __init__(self) -> None:
        self.known: list[Engine] = []
        self.led: list[Route] = []
        self.stopped: list[str] = []
        self.started: list[str] = []
        self.ends = True
        """False: an engine that is stopped goes on stopping."""
        self.comes_up = EngineState.READY
        self.answers = asyncio.Event()
        self.answers.set()
        self.lost: HostError | None = None

    def add(self, name: str, model: str = "m", preset: str = "") -> Engine:
        """An engine that serves."""
        plan = planned(name, model, preset)
        engine = Engine(
            id=f"engine-{name}-{len(self.known)}",
            name=name,
            engine="fake",
            server=plan.server,
            server_version="1",
            state=EngineState.READY,
            plan=plan,
            created_at=len(self.known),
        )
        self.known.insert(0, engine)
        return engine

    def change(self, engine_id: str, state: EngineState) -> Engine:
        """Give an engine another state."""
        changed = self._get(engine_id).model_copy(update={"state": state})
        self.known = [changed if one.id == engine_id else one for one in self.known]
        return changed

    def _get(self, engine_id: str) -> Engine:
        for one in self.known:
            if engine_id in (one.id, one.name):
                return one
        raise HostError(Reason.NOT_FOUND, f"There is no engine {engine_id}.")

    def _asked(self) -> None:
        if self.lost is not None:
            raise self.lost

    async def engines(self) -> Sequence[Engine]:
        self._asked()
        return self.known

    async def engine(self, engine_id: str) -> Engine:
        self._asked()
        return self._get(engine_id)

    async def routes(self) -> Sequence[Route]:
        self._asked()
        return self.led

    async def plan_again(self, engine_id: str) -> LaunchPlan:
        self._asked()
        return self._get(engine_id).plan

    async def start(self, asked: StartRequest) -> Engine:
        self._asked()
        name = asked.plan.removeprefix("plan-")
        engine = self.add(name)
        self.started.append(engine.id)
        await self.answers.wait()
        return self.change(engine.id, self.comes_up)

    async def stop(self, engine_id: str, *, now: bool = False) -> Engine:
        self._asked()
        self.stopped.append(engine_id)
        return self.change(engine_id, EngineState.UNLOADED if self.ends else EngineState.STOPPING)


class FakePlaces(Places):
    """This machine and gpu1, which are FAKE."""

    def __init__(self, store: Store) -> None:
        self.local, self.gpu1 = FakePlace(), FakePlace()
        book = HostBook(store)
        book.add(AddRemoteHost(name="gpu1", destination="gpu1", mode=RemoteMode.ENGINE_HOST))
        listed = SimpleNamespace(models=())
        hosts = SimpleNamespace(
            book=book, look=lambda _name: None, there=lambda _name: listed, shown=lambda _name: listed
        )
        super().__init__(cast(Any, SimpleNamespace(is_on_demand=lambda _name: False)), cast(Any, hosts))

    def of(self, machine: str) -> Place:
        return self.gpu1 if machine == "gpu1" else self.local


class FakeCutOvers:
    """Trials that every target passes."""

    def __init__(self, book: RouteBook) -> None:
        self._book = book

    def requests(self, _route: str, _asked: RouteTargets) -> tuple[str, ...]:
        return ()

    async def move(self, _control: object, route: Route, asked: RouteTargets, **_said: object) -> CutOver:
        return CutOver(route=self._book.put(route.id, asked), checks=())


class Bench:
    """The operations over FAKE machines."""

    def __init__(self, store: Store) -> None:
        events = EventLog()
        self.places = FakePlaces(store)
        self.here, self.gpu1 = self.places.local, self.places.gpu1
        self.routes, self.promoted = RouteBook(store), PromotionBook(store)
        self.jobs = JobRunner(events.publish, store)
        cutovers = cast(Any, FakeCutOvers(self.routes))
        self.promotions = PromotionOperations(
            self.places, self.routes, cutovers, self.jobs, self.promoted, events
        )
        self.rollbacks = RollbackOperations(self.places, self.routes, self.jobs, self.promoted, lambda: None)

    def lead(self, *targets: str, route: str = "pub") -> Route:
        """Lead a route somewhere."""
        return self.routes.put(route, RouteTargets(engines=targets))

    async def promote(self, engine: str, host: str = "local") -> Job:
        """Begin a promotion that ends what was led to."""
        return await self.promotions.promote(host, asked(engine))


def asked(engine: str) -> PromoteOnHost:
    """The wish for a promotion of `pub` that ends what it led to."""
    return PromoteOnHost(route="pub", engine=engine, stop_old=True)


@contextmanager
def bench() -> Iterator[Bench]:
    """A bench on the database of this test; to be made where its loop runs."""
    folders = Folders.resolve()
    folders.make_run_folder()
    store = Store(folders.store)
    try:
        yield Bench(store)
    finally:
        store.close()
