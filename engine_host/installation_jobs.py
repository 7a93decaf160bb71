"""Jobs on vLLM's environments: install one, remove one."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from typing import Any

from engine_host._errors import HostError
from engine_host.engines.vllm_install import InstallRequest, install
from engine_host.engines.vllm_installations import VllmInstallations
from engine_host.events import EventLog
from engine_host.folders import Folders
from engine_host.jobs import JobControl, JobRunner
from engine_host.log_book import LogBook
from engine_host.overlay.bundle import install_pth
from engine_host.protocol.engines import Engine, InstallationPage
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.events import ServersChangedEvent
from engine_host.protocol.jobs import Job, JobKind, JobStep


class InstallationJobs:
    """Which environments of vLLM there are, and the jobs that make and remove them."""

    def __init__(
        self,
        folders: Folders,
        jobs: JobRunner,
        events: EventLog,
        log_book: LogBook,
        installations: VllmInstallations,
        running: Callable[[], Sequence[Engine]],
    ) -> None:
        self._folders = folders
        self._jobs = jobs
        self._events = events
        self._log_book = log_book
        self._installations = installations
        self._running = running

    async def page(self) -> InstallationPage:
        """Every environment that is or could be here."""
        found = await asyncio.to_thread(self._installations.all)
        return InstallationPage(seq=self._events.seq, installations=found)

    def install(self, wanted: str) -> Job:
        """Install one; a running install of it is answered as it is. Raises HostError(not_found)."""
        pin = self._installations.pin(wanted)
        for job in self._jobs.all():
            if job.kind is JobKind.ENGINE_INSTALL and job.touches == _touches(wanted) and not job.ended:
                return job
        self._refuse_used(wanted)
        return self._jobs.start(
            JobKind.ENGINE_INSTALL,
            f"Install vLLM {pin.version} ({pin.build})",
            _touches(wanted),
            f"sndr engine install vllm --version {pin.version} --build {pin.build}",
            lambda control: self._install(wanted, control),
        )

    def remove(self, wanted: str) -> Job:
        """Remove one. Raises HostError(not_found), HostError(conflict) while an engine runs from it."""
        pin = self._installations.pin(wanted)
        self._refuse_used(wanted)
        return self._jobs.start(
            JobKind.ENGINE_REMOVE,
            f"Remove vLLM {pin.version} ({pin.build})",
            _touches(wanted),
            f"sndr engine remove vllm --version {pin.version} --build {pin.build}",
            lambda control: self._remove(wanted, control),
        )

    async def _install(self, wanted: str, control: JobControl) -> dict[str, Any]:
        pin = self._installations.pin(wanted)
        said = 0

        def tell(step: JobStep) -> None:
            nonlocal said
            control.step(step.number, step.of, step.name, step.detail, step.progress)
            if step.number != said:
                said = step.number
                self._log_book.add("install", [f"{step.number}/{step.of} {step.name}"])

        control.undone = "The half-installed environment was removed."
        control.left = "Downloads stay in the cache, so that the next try starts from them."
        request = InstallRequest(
            pin, self._installations.home(pin), self._folders.logs / f"install-vllm-{pin.id}.log", install_pth
        )
        record = await install(request, tell)
        control.undone = control.left = ""
        self._log_book.add("install", [f"installed vLLM {pin.id} in {request.home}"])
        self._events.publish(ServersChangedEvent())
        shown = ("version", "build", "size", "seconds", "repaired")
        return {"folder": str(request.home), **{name: record[name] for name in shown}}

    async def _remove(self, wanted: str, control: JobControl) -> dict[str, Any]:
        home = self._installations.home(self._installations.pin(wanted))
        control.step(1, 1, "Remove the environment", str(home))
        # The record first: what is half removed must not be taken for an environment.
        await asyncio.to_thread((home / "installation.json").unlink, missing_ok=True)
        await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)
        self._events.publish(ServersChangedEvent())
        return {"removed": str(home)}

    def _refuse_used(self, wanted: str) -> None:
        for engine in self._running():
            if engine.plan.installation == wanted:
                raise HostError(
                    Reason.CONFLICT,
                    f"{engine.name} runs from vLLM {wanted}.",
                    cause="An environment is not changed under a running engine.",
                    fix=Fix(text="Stop it first.", command=f"sndr stop {engine.name}"),
                    evidence={"engine": engine.id, "installation": wanted},
                )


def _touches(wanted: str) -> str:
    return f"vllm {wanted}"
