"""A real manager with real processes; the engine and its adapter are FAKE."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from engine_host.core.errors import HostError
from engine_host.core.jobs import JobRunner
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.paths import Folders
from engine_host.core.store import Store
from engine_host.engines.adapter import Adapter
from engine_host.engines.manager import EngineManager
from engine_host.engines.process.reaper import Reaper
from engine_host.engines.process.spawn import EngineProcess
from engine_host.engines.served_lines import ServedLines
from engine_host.engines.stage_reader import StageChange, StageReader
from engine_host.protocol.engines import Engine, EngineState, Readings, Verification
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.events import EngineStateEvent, EventBase
from engine_host.protocol.jobs import Job
from engine_host.protocol.launch.plans import EngineRef, Finding, LaunchPlan, ServerChoice
from tests.unit.asynchronous import until

# Processes that outlive a rig; this Python stays their parent and has to collect them at the end.
OUTLIVING: list[EngineProcess] = []
FAKE_ENGINE = Path(__file__).with_name("fake_engine.py")


class FakeStages(StageReader):
    """Reads `stage NAME` lines."""

    def feed(self, line: str) -> StageChange | None:
        return StageChange(line[6:], buffers={"weights": 7}) if line.startswith("stage ") else None

    def measure(self, line: str) -> bool:
        return False


class FakeAdapter(Adapter):
    """The other half of `fake_engine.py`."""

    name = "fake"
    stripped_environment: tuple[str, ...] = ()
    stops_by_leader: bool = False
    served_lines = ServedLines(templates=("stage Serve", "fatal: the fake engine was told to crash"))

    def __init__(self) -> None:
        self.defect: Exception | None = None

    def stage_reader(self) -> FakeStages:
        return FakeStages()

    def is_noise(self, line: str) -> bool:
        return line == "noise"

    async def verify(self, client: httpx.AsyncClient, plan: LaunchPlan, began: float) -> Verification:
        if self.defect:
            raise self.defect
        if not (await client.get("/verify")).is_success:
            raise HostError(Reason.ENGINE_NOT_READY, f"{plan.name} said nothing.")
        return Verification(model_listed=True, token_generated=True, ready_after=time.monotonic() - began)

    async def read(self, client: httpx.AsyncClient) -> Readings:
        said = (await client.get("/read")).raise_for_status().json()
        return Readings(at=time.time(), generated_tokens_total=said["generated"])

    def explain_exit(self, code: int | None, tail: Sequence[str], plan: LaunchPlan) -> Problem:
        return Problem(
            reason=Reason.ENGINE_CRASHED,
            message=f"{plan.name} ended with {code}.",
            evidence={"last": tail[-1] if tail else ""},
        )


class Rig:
    """One run of a host, as far as engines go."""

    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self.events: list[EventBase] = []
        self.store = Store(folders.store)
        self.jobs = JobRunner(self.events.append, self.store)
        self.log_buffer = LogBuffer(self.events.append)
        self.reaper = Reaper("test")
        self.adapter = FakeAdapter()
        self.drained: list[str] = []
        self.drain_limits: list[float] = []
        self.may_drain = asyncio.Event()
        self.may_drain.set()
        self.no_room: HostError | None = None
        self.manager = EngineManager(
            folders,
            self.events.append,
            self.jobs,
            self.store,
            self.log_buffer,
            self.reaper,
            {"fake": self.adapter},
            self._drain,
            room=self._room,
        )

    async def _drain(self, engine: str, seconds: float) -> bool:
        self.drained.append(engine)
        self.drain_limits.append(seconds)
        await self.may_drain.wait()
        return True

    async def _room(self, _plan: LaunchPlan) -> None:
        if self.no_room is not None:
            raise self.no_room

    def plan(
        self,
        name: str,
        mode: str = "ok",
        *,
        keep: bool = False,
        finding: Finding | None = None,
        instead_of: Sequence[Engine] = (),
    ) -> LaunchPlan:
        """A plan that runs the fake engine."""
        identifier = f"plan-{name}"
        socket = self.folders.run / f"{identifier}.sock"
        return LaunchPlan(
            id=identifier,
            fingerprint="f",
            created_at=0,
            model="m",
            model_path="/models/m.gguf",
            name=name,
            engine="fake",
            server=ServerChoice.OWN,
            server_version="fake 1",
            argv=(sys.executable, "-I", "-S", str(FAKE_ENGINE), str(socket), mode),
            environment={},
            settings=(),
            streams=1,
            context=128,
            speculation="off",
            keep=keep,
            findings=(finding,) if finding else (),
            command=f"sndr run {name}",
            instead_of=tuple(EngineRef(id=one.id, name=one.name) for one in instead_of),
        )

    def start(
        self, name: str, mode: str = "ok", *, keep: bool = False, instead_of: Sequence[Engine] = ()
    ) -> Engine:
        return self.manager.start(self.plan(name, mode, keep=keep, instead_of=instead_of))

    async def ready(self, name: str, mode: str = "ok", *, keep: bool = False) -> Engine:
        """Start an engine and wait until it serves."""
        engine = self.start(name, mode, keep=keep)
        await self.job(engine)
        assert self.state(engine) is EngineState.READY, self.manager.get(engine.id)
        return self.manager.get(engine.id)

    async def reached(self, engine: Engine, *states: EngineState) -> Engine:
        """Wait until an engine is in one of these states."""
        await until(lambda: self.state(engine) in states)
        return self.manager.get(engine.id)

    async def job(self, engine: Engine) -> Job:
        """Wait for the end of an engine's newest job."""
        job = self.manager.get(engine.id).job
        assert job is not None
        return await self.jobs.ended(job)

    def state(self, engine: Engine) -> EngineState:
        return self.manager.get(engine.id).state

    def states(self, engine: Engine) -> list[EngineState]:
        """The states that were published, without repeats."""
        found: list[EngineState] = []
        for event in self.events:
            if isinstance(event, EngineStateEvent) and event.engine.id == engine.id:
                found += [event.engine.state] if found[-1:] != [event.engine.state] else []
        return found

    def nothing_left(self) -> None:
        """No process, no socket, no record."""
        assert list(self.folders.run.glob("*.sock")) == []
        assert self.store.newest("engine", 10) == []
        assert self.manager._running == {}

    async def close(self) -> None:
        """As the host ends in order."""
        self.may_drain.set()
        await self.jobs.close()
        OUTLIVING.extend(running.process for running in self.manager._running.values())
        await self.manager.close()
        self.reaper.close()
        self.log_buffer.close()
        self.store.close()


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    """A rig in the folders of this test, closed in order."""
    folders = Folders.resolve()
    folders.make_run_folder()
    built = Rig(folders)
    try:
        yield built
    finally:
        await built.close()
