"""Jobs on llama.cpp's servers: build one for this machine, and measure it against the prebuilt one."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from engine_host.bench.engine_speed import REPEATS, measure
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.core.likely_causes import lost_file
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.paths import Folders
from engine_host.core.store import Store
from engine_host.engines.llamacpp.build.builder import BuildRequest, build, installed
from engine_host.engines.llamacpp.choice import LlamaCppServers
from engine_host.engines.llamacpp.command import LlamaCppStart
from engine_host.engines.llamacpp.servers import ServerCapabilities
from engine_host.engines.llamacpp.temporary_server import temporary_server
from engine_host.operations.performs import performs
from engine_host.protocol.engines import Backend, ServerBuild, ServerPage, SpeedComparison, SpeedRow
from engine_host.protocol.errors import Reason
from engine_host.protocol.events import ServersChangedEvent
from engine_host.protocol.host import Gpu
from engine_host.protocol.jobs import Job, JobKind, JobState, JobStep
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import ServerChoice
from engine_host.protocol.operations import table as ops

_STREAMS = (1, 4, 8)
_CONTEXT = 1024


class ServerOperations:
    """The servers of llama.cpp, and the jobs that make and measure them."""

    def __init__(
        self,
        folders: Folders,
        jobs: JobRunner,
        store: Store,
        events: EventLog,
        log_buffer: LogBuffer,
        servers: LlamaCppServers,
        demo_model: Callable[[], Path | None],
        wanted: Callable[[], ServerChoice],
        gpus: Callable[[], tuple[Gpu, ...]],
    ) -> None:
        self._folders = folders
        self._jobs = jobs
        self._store = store
        self._events = events
        self._log_buffer = log_buffer
        self._servers = servers
        self._demo_model = demo_model
        self._wanted = wanted
        self._gpus = gpus

    @performs(ops.SERVERS)
    async def page(self) -> ServerPage:
        """The servers, which of them runs next, and the last measured comparison."""
        kept = self._store.get("comparison", "llama.cpp")
        return ServerPage(
            seq=self._events.seq,
            servers=await self._servers.all(),
            next_start=await self._servers.next_choice(self._wanted()),
            comparison=SpeedComparison.model_validate_json(kept) if kept else None,
        )

    @performs(ops.BUILD_SERVER)
    def build(self, asked: ServerBuild) -> Job:
        """Build llama.cpp for this machine; one that is under way is answered as it is."""
        backend = asked.backend
        for job in self._jobs.all():
            if job.kind is JobKind.ENGINE_BUILD and job.state in {JobState.QUEUED, JobState.RUNNING}:
                return job
        return self._jobs.start(
            JobKind.ENGINE_BUILD,
            tr("Build llama.cpp for this machine"),
            "llama.cpp build",
            "sndr engine build llama.cpp"
            + ("" if backend is Backend.AUTO else f" --backend {backend.value}"),
            partial(self._build, backend),
        )

    @performs(ops.COMPARE_SERVERS)
    def compare(self) -> Job:
        """Measure the prebuilt server against the built one on the bundled model."""
        return self._jobs.start(
            JobKind.ENGINE_COMPARE,
            tr("Measure the prebuilt llama.cpp against the built one"),
            "engine memory",
            "sndr engine compare",
            self._compare,
        )

    async def _build(self, backend: Backend, control: JobControl) -> dict[str, Any]:
        said = 0

        def tell(step: JobStep) -> None:
            nonlocal said
            control.step(step.number, step.of, step.name, step.detail, step.progress)
            if step.number != said:
                said = step.number
                self._log_buffer.add("build", [f"{step.number}/{step.of} {step.name}"])

        control.left = tr("Downloads stay in the cache, so that the next try starts from them.")
        control.undone = tr("The compiler was ended and its half-built files were removed.")
        gpus = await asyncio.to_thread(self._gpus)
        request = BuildRequest(
            self._folders.cache,
            self._folders.data,
            self._demo_model(),
            backend,
            tuple(gpu.compute_capability for gpu in gpus if gpu.compute_capability),
        )
        before = installed(self._folders.data)[:1]
        result = await build(request, tell)
        control.left = control.undone = ""
        if (result.folder,) != before:
            # What was measured is the build that ran before, which had the same name and version.
            self._store.remove("comparison", "llama.cpp")
        self._log_buffer.add("build", [f"installed {result.version} in {result.folder}"])
        self._events.publish(ServersChangedEvent())
        return {
            "version": result.version,
            "backend": result.backend.value,
            "devices": list(result.devices),
            "folder": str(result.folder),
            "from_cache": result.from_cache,
            "seconds": result.seconds,
        }

    async def _compare(self, control: JobControl) -> dict[str, Any]:
        model = self._demo_model()
        if model is None:
            raise HostError(
                Reason.NOT_FOUND,
                "The bundled model is missing; there is nothing to measure.",
                cause=lost_file(),
                fix="Get the folder resources/models back, or name a model of your own: `sndr run MODEL`.",
            )
        rows: list[SpeedRow] = []
        # Both are there before one is measured; the one that may be missing is looked for first.
        built = await self._servers.find(ServerChoice.BUILT)
        sides = (
            (ServerChoice.PREBUILT, await self._servers.find(ServerChoice.PREBUILT)),
            (ServerChoice.BUILT, built),
        )
        for number, (choice, server) in enumerate(sides, start=1):
            name = tr("Measure the {choice} server", choice=choice.value)
            control.step(number, 2, name, tr("starting"))
            rows += await self._measure(choice, server, model, partial(control.step, number, 2, name))
        comparison = SpeedComparison(model=model.stem, at=time.time(), repeats=REPEATS, rows=tuple(rows))
        self._store.put("comparison", "llama.cpp", comparison.at, comparison.model_dump_json())
        self._events.publish(ServersChangedEvent())
        return comparison.model_dump(mode="json")

    async def _measure(
        self, choice: ServerChoice, server: ServerCapabilities, model: Path, say: Callable[[str], None]
    ) -> tuple[SpeedRow, ...]:
        """Decode speed of one server, started for this alone; raises HostError when it does not work."""
        start = LlamaCppStart(str(model), "bench", {"context": _CONTEXT, "streams": max(_STREAMS)})
        async with temporary_server(server, start) as running:
            result = await measure(running.client, "bench", streams=_STREAMS, say=say)
        return tuple(speed.row(choice, server.label) for speed in result.decode)
