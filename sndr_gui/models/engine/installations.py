"""vLLM's environments as the window knows them: which there are, which a start gets, install and remove."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.engines import Engine, Installation, InstallationPage
from engine_host.protocol.errors import Problem
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from sndr_gui.host.session import Session
from sndr_gui.kit import formats

BUILDS = {"cuda": "CUDA", "cpu": "CPU"}
_KINDS = (JobKind.ENGINE_INSTALL, JobKind.ENGINE_REMOVE)


class InstallationsModel(QObject):
    """Shared by the pages that choose, install or remove an environment.

    Signals:
        listed: the list was read
        changed: the list, a job of it, or what is under way is new
    """

    listed = Signal()
    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.page: InstallationPage | None = None
        self.problems: dict[str, Problem] = {}
        self._pending: set[str] = set()
        state = session.state
        state.outdated.connect(self._on_outdated)
        state.jobs_changed.connect(self.changed)
        state.engines_changed.connect(self.changed)
        session.connection.changed.connect(self._on_link)

    def _on_link(self) -> None:
        if self.session.connection.connected:
            self.load()
        self.changed.emit()

    def _on_outdated(self, part: str) -> None:
        if part in ("servers", "all") and self.session.connection.connected:
            self.load()

    def load(self) -> None:
        """Read the list again."""

        async def work(client: AsyncControlClient) -> None:
            self.page = await client.call(ops.INSTALLATIONS)
            self.listed.emit()
            self.changed.emit()

        self.session.read("read vLLM's environments", work)

    # What there is.

    @property
    def all(self) -> tuple[Installation, ...]:
        """Every environment that is or could be here, the ones for this machine first."""
        known = self.page.installations if self.page else ()
        first = next((one.build for one in known if one.recommended), "")
        return tuple(sorted(known, key=lambda one: one.build != first))

    def get(self, wanted: str) -> Installation | None:
        """Return the environment with this id."""
        return next((one for one in self.all if one.id == wanted), None)

    def resolve(self, wanted: str) -> Installation | None:
        """Return the environment that a start gets; without a wish the best installed one."""
        if wanted:
            return self.get(wanted)
        return next((one for one in self.all if one.present), None)

    def missing(self, wanted: str, build: str = "") -> Installation | None:
        """Return the environment to install before a start can be planned, if one is missing.

        `build` is what the start needs, where it does not run on every build.
        """
        one = self.resolve(wanted)
        if build and one is not None and one.present and one.build != build:
            of_build = [entry for entry in self.all if entry.build == build]
            here = any(entry.present for entry in of_build)
            return None if here or not of_build else of_build[0]
        if one is None:
            damaged = next((entry for entry in self.all if entry.problem is not None), None)
            return damaged or next((entry for entry in self.all if entry.recommended), None)
        return None if one.present else one

    def user(self, wanted: str) -> Engine | None:
        """Return an engine that runs from an environment."""
        live = self.session.state.live
        return next((engine for engine in live if engine.plan.installation == wanted), None)

    def job(self, wanted: str) -> Job | None:
        """Return the job on an environment that is under way, or that failed last."""
        jobs = [job for job in self.session.state.jobs.values() if job.kind in _KINDS]
        mine = [job for job in jobs if job.touches == f"vllm {wanted}"]
        newest = max(mine, key=lambda job: job.created_at, default=None)
        return newest if newest is not None and newest.state is not JobState.DONE else None

    def busy(self, wanted: str) -> bool:
        """Return True while an environment is being changed."""
        job = self.job(wanted)
        return wanted in self._pending or (job is not None and not job.ended)

    def cancelling(self, job: Job) -> bool:
        """Return True once a job was asked to end."""
        return job.id in self._pending

    # What can be done.

    def install(self, wanted: str) -> None:
        """Install an environment, or install a damaged one again."""

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(ops.INSTALL, id=wanted))

        self._send(wanted, wanted, work)

    def remove(self, wanted: str) -> None:
        """Remove an environment."""

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(ops.REMOVE_INSTALLATION, id=wanted))

        self._send(wanted, wanted, work)

    def cancel(self, wanted: str) -> None:
        """Cancel the job on an environment."""
        job = self.job(wanted)
        if job is None or job.ended:
            return
        name = job.id

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(ops.CANCEL_JOB, id=name))

        self._send(name, wanted, work)

    def _send(self, name: str, wanted: str, work: Callable[[AsyncControlClient], Awaitable[None]]) -> None:
        if name in self._pending:
            return
        self._pending.add(name)
        self.problems.pop(wanted, None)
        self.changed.emit()

        def done() -> None:
            self._pending.discard(name)
            self.changed.emit()

        def failed(error: HostError) -> None:
            if not error.lost:
                self.problems[wanted] = error.problem
            else:
                self.session.notices.error("vllm environments", str(error))

        self.session.command("vLLM's environments", work, done=done, failed=failed)


def title_of(one: Installation) -> str:
    """Return the version and build of an environment."""
    return f"vLLM {one.version} · {BUILDS.get(one.build, one.build)}"


def about(one: Installation, now: float | None = None) -> str:
    """Return the size, repairs and age of an installed environment, or the download of another."""
    if not one.present:
        wants = tr(
            "{size} to download  ·  needs {size_2} of free disk",
            size=formats.size(one.download),
            size_2=formats.size(one.needs_free),
        )
        left = (
            "  ·  " + tr("{size} left by an interrupted install", size=formats.size(one.leftover))
            if one.leftover
            else ""
        )
        return wants + left
    parts = [formats.size(one.size)]
    parts.append(tr("repaired: {repairs}", repairs=", ".join(one.repairs)) if one.repairs else tr("intact"))
    if one.installed_at is not None:
        parts.append(tr("installed {age}", age=formats.age((now or time.time()) - one.installed_at)))
    return "  ·  ".join(parts)


def command(verb: str, one: Installation) -> str:
    """Return the command line that installs or removes an environment."""
    return f"sndr engine {verb} vllm --version {one.version} --build {one.build}"
