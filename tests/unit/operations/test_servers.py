"""Jobs on llama.cpp's servers, over a build that is a fake; tests/integration/engines has the real one."""

import asyncio
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.paths import Folders
from engine_host.core.store import Store
from engine_host.engines.llamacpp.build.builder import BuildRequest, BuildResult
from engine_host.engines.llamacpp.choice import LlamaCppServers
from engine_host.operations.servers import ServerOperations
from engine_host.protocol.engines import Backend, ServerBuild, SpeedComparison
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.jobs import Job, JobState, JobStep
from engine_host.protocol.launch.plans import ServerChoice
from tests.unit.asynchronous import run

GPU = Gpu(
    index=0, uuid="GPU-0", name="RTX 3090", memory_total=24 << 30, memory_used=0, compute_capability="8.6"
)
_UNDER_WAY = {JobState.QUEUED, JobState.RUNNING}
MEASURED = SpeedComparison(model="demo", at=1.0, repeats=3, rows=())


def _build(backend: Backend, jobs: ServerOperations) -> Job:
    return jobs.build(ServerBuild(backend=backend))


class Desk:
    """The jobs, the requests that reached the build, and builds that are there at once."""

    def __init__(self, store: Store) -> None:
        self.folders = Folders.resolve()
        self.store = store
        self.asked: list[BuildRequest] = []
        self.builds = 0

    async def build(self, request: BuildRequest, _progress: Callable[[JobStep], None]) -> BuildResult:
        self.asked.append(request)
        folder = request.engines / request.backend.value
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        (folder / "bin" / "llama-server").touch()
        self.builds += 1
        (folder / "build.json").write_text(json.dumps({"built_at": self.builds}))
        return BuildResult("key", request.backend, (), folder, folder, "1", True, {}, folder)

    def compare(self) -> Job:
        """Measure the prebuilt server against the built one."""
        return self._work(lambda jobs: jobs.compare())[0]

    def work(self, *backends: Backend) -> list[Job]:
        """Build for these, one after the other."""
        return self._work(*(partial(_build, backend) for backend in backends))

    def _work(self, *begin: Callable[[ServerOperations], Job]) -> list[Job]:
        async def work() -> list[Job]:
            events = EventLog()
            runner = JobRunner(events.publish, self.store)
            jobs = ServerOperations(
                self.folders,
                runner,
                self.store,
                events,
                LogBuffer(events.publish),
                LlamaCppServers(self.folders.data, lambda: None),
                lambda: Path("demo.gguf"),
                lambda: ServerChoice.AUTO,
                lambda: (GPU,),
            )
            ended = []
            for one in begin:
                job = one(jobs)
                async with asyncio.timeout(10):
                    while (job := runner.get(job.id)).state in _UNDER_WAY:  # noqa: ASYNC110 - jobs have no event to wait for
                        await asyncio.sleep(0.01)
                ended.append(job)
            return ended

        return run(work())

    @property
    def measured(self) -> bool:
        return self.store.get("comparison", "llama.cpp") is not None


@pytest.fixture
def desk(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    store = Store(home / "s.sqlite")
    made = Desk(store)
    monkeypatch.setattr("engine_host.operations.servers.build", made.build)
    yield made
    store.close()


def test_a_build_is_for_the_gpus_that_are_here(desk: Desk) -> None:
    (job,) = desk.work(Backend.VULKAN)
    assert job.state is JobState.DONE
    assert job.command == "sndr engine build llama.cpp --backend vulkan"
    assert (desk.asked[0].backend, desk.asked[0].architectures) == (Backend.VULKAN, ("8.6",))
    assert desk.work(Backend.AUTO)[0].command == "sndr engine build llama.cpp"


def test_a_comparison_without_a_build_measures_nothing_first(desk: Desk) -> None:
    """Here no process may start, and the prebuilt server is looked at by starting it."""
    job = desk.compare()
    assert job.state is JobState.FAILED
    assert job.error is not None
    assert job.error.reason is Reason.NOT_FOUND, job.error
    assert "has not been built" in job.error.message


def test_what_was_measured_of_another_build_is_forgotten(desk: Desk) -> None:
    desk.work(Backend.CPU)
    desk.store.put("comparison", "llama.cpp", 1.0, MEASURED.model_dump_json())
    desk.work(Backend.CPU)
    assert desk.measured, "it is the same build"
    desk.work(Backend.VULKAN)
    assert not desk.measured
