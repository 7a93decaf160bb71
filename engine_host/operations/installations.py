"""Jobs on vLLM's environments: install one, remove one."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.paths import Folders
from engine_host.engines.vllm.environment_folder import (
    clear,
    clear_leftovers,
    is_complete,
    leftovers,
    lock_environment,
    not_deleted,
    refuse_used,
    restore,
    retired,
    size,
)
from engine_host.engines.vllm.install import STEPS, InstallRequest, install
from engine_host.engines.vllm.installations import VllmInstallations
from engine_host.engines.vllm.pins import PINS
from engine_host.operations.performs import performs
from engine_host.overlay.bundle import install_pth
from engine_host.protocol.engines import Engine, InstallationPage
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.events import ServersChangedEvent
from engine_host.protocol.jobs import Job, JobKind, JobStep
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops

_T = TypeVar("_T")


class InstallationOperations:
    """The environments of vLLM, and the jobs that make and remove them."""

    def __init__(
        self,
        folders: Folders,
        jobs: JobRunner,
        events: EventLog,
        log_buffer: LogBuffer,
        installations: VllmInstallations,
        running: Callable[[], Sequence[Engine]],
    ) -> None:
        self._folders = folders
        self._jobs = jobs
        self._events = events
        self._log_buffer = log_buffer
        self._installations = installations
        self._running = running

    @performs(ops.INSTALLATIONS)
    async def page(self) -> InstallationPage:
        """Every environment that is or could be here."""
        found = await asyncio.to_thread(self._installations.all)
        return InstallationPage(seq=self._events.seq, installations=found)

    async def recover(self) -> None:
        """Bring back each environment whose reinstall was cut off by the end of a host."""
        for home in map(self._installations.home, PINS):
            try:
                back = await restore(home)
            except HostError as error:
                # Another host is at work there, or it cannot be moved; starts say that it is not there.
                self._log_buffer.add("install", [error.problem.sentence()])
                continue
            if back:
                self._log_buffer.add("install", [f"brought back {home}: its reinstall was cut off"])

    @performs(ops.INSTALL)
    def install(self, wanted: str) -> Job:
        """Install one; a running install of it is answered as it is. Raises HostError(not_found)."""
        pin = self._installations.pin(wanted)
        for job in self._jobs.all():
            if job.kind is JobKind.ENGINE_INSTALL and job.touches == _touches(wanted) and not job.ended:
                return job
        self._refuse_used(wanted)
        return self._jobs.start(
            JobKind.ENGINE_INSTALL,
            tr("Install vLLM {version} ({build})", version=pin.version, build=pin.build),
            _touches(wanted),
            f"sndr engine install vllm --version {pin.version} --build {pin.build}",
            lambda control: self.carry_out(wanted, control),
        )

    @performs(ops.REMOVE_INSTALLATION)
    def remove(self, wanted: str) -> Job:
        """Remove one. Raises HostError(not_found), HostError(conflict) while an engine runs from it."""
        pin = self._installations.pin(wanted)
        self._refuse_used(wanted)
        return self._jobs.start(
            JobKind.ENGINE_REMOVE,
            tr("Remove vLLM {version} ({build})", version=pin.version, build=pin.build),
            _touches(wanted),
            f"sndr engine remove vllm --version {pin.version} --build {pin.build}",
            lambda control: self._remove(wanted, control),
        )

    async def carry_out(self, wanted: str, control: JobControl) -> dict[str, Any]:
        """Install one within a job; what fails is undone. Raises HostError: conflict, and of the install."""
        self._refuse_used(wanted)
        pin = self._installations.pin(wanted)
        said = 0

        def tell(step: JobStep) -> None:
            nonlocal said
            control.step(step.number, step.of, step.name, step.detail, step.progress)
            if step.number != said:
                said = step.number
                self._log_buffer.add("install", [f"{step.number}/{step.of} {step.name}"])

        home = self._installations.home(pin)
        await self._clear_leftovers(home, control)
        request = InstallRequest(pin, home, self._folders.logs / f"install-vllm-{pin.id}.log", install_pth)
        try:
            record = await _to_the_end(install(request, tell), may_cancel=True)
        except BaseException:
            if said < 2:
                raise  # Nothing was begun, and an environment that was there still is.
            control.left = tr("Downloads stay in the cache, so that the next try starts from them.")
            back = is_complete(home)
            unwanted = retired(home) if back else (home, *retired(home))
            if left := [path for path in unwanted if path.exists()]:
                control.left = tr(
                    "{path} could not be deleted entirely. {stays}", path=str(left[0]), stays=control.left
                )
            if back:
                control.undone = tr("The environment that was there before is back, as it was.")
            elif not left:
                control.undone = tr("The half-installed environment was removed.")
            raise
        finally:
            self._events.publish(ServersChangedEvent())
        self._log_buffer.add("install", [f"installed vLLM {pin.id} in {request.home}"])
        shown = ("version", "build", "size", "seconds", "repaired")
        return {"folder": str(request.home), **{name: record[name] for name in shown}}

    async def _clear_leftovers(self, own: Path, control: JobControl) -> None:
        """Delete what cut-off work on other environments left; its own the install clears itself."""
        for home in map(self._installations.home, PINS):
            if home == own or not await asyncio.to_thread(leftovers, home):
                continue
            control.step(
                1, len(STEPS), STEPS[0], tr("clears what cut-off work on vLLM {home} left", home=home.name)
            )
            try:
                freed = await clear_leftovers(home)
            except HostError as error:
                # Another host is quicker, or it stays: neither is in the way of this install.
                self._log_buffer.add("install", [error.problem.sentence()])
                continue
            self._log_buffer.add("install", [f"freed {freed / 2**20:.1f} MiB of cut-off work in {home}"])

    async def _remove(self, wanted: str, control: JobControl) -> dict[str, Any]:
        pin = self._installations.pin(wanted)
        home = self._installations.home(pin)
        freed = await asyncio.to_thread(lambda: sum(map(size, (home, *retired(home)))))
        control.step(1, 1, tr("Remove the environment"), str(home))
        kept = await _to_the_end(_cleared(home), may_cancel=False)
        self._events.publish(ServersChangedEvent())
        if kept:
            raise not_deleted(tr("vLLM {pin} is removed", pin=pin.id), home, kept)
        self._log_buffer.add("install", [f"removed vLLM {pin.id} from {home}"])
        return {"removed": str(home), "freed": freed}

    def _refuse_used(self, wanted: str) -> None:
        for engine in self._running():
            if engine.plan.installation == wanted:
                raise HostError(
                    Reason.CONFLICT,
                    tr("{engine} runs from vLLM {wanted}.", engine=engine.name, wanted=wanted),
                    cause="An environment is not changed under a running engine.",
                    fix=Fix(text="Stop it first.", command=f"sndr stop {engine.name}"),
                    evidence={"engine": engine.id, "installation": wanted},
                )


def _touches(wanted: str) -> str:
    return f"vllm {wanted}"


async def _cleared(home: Path) -> tuple[OSError, ...]:
    async with lock_environment(home):
        await asyncio.to_thread(refuse_used, home)
        return await asyncio.to_thread(clear, home)


async def _to_the_end(work: Coroutine[Any, Any, _T], *, may_cancel: bool) -> _T:
    """Wait until work on files has really ended, however often its job is cancelled; its result.

    Work that may not be cancelled, or is done before it notices, ends as what it is: done.
    """
    task = asyncio.create_task(work)
    asked = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            if may_cancel and not asked:
                task.cancel()
            asked = True
    return task.result()
