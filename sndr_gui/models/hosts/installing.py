"""The engine host of another machine: planned first, then installed, updated or removed as a job."""

from __future__ import annotations

import shlex
from enum import StrEnum

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Problem
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.operations import remote_install as ops
from engine_host.protocol.remote.install import InstallOnHost, RemoteInstallPlan
from sndr_gui.host.session import Session
from sndr_gui.models.hosts.planned import diff_of

KINDS = (JobKind.HOST_INSTALL, JobKind.HOST_UPDATE, JobKind.HOST_UNINSTALL)
_TOUCHED = ("host {name}", "files of {name}", "services of {name}", "stage {name}", "power of {name}")


class Verb(StrEnum):
    """The change of the engine host over there."""

    INSTALL = "install"
    START = "start"
    UPDATE = "update"
    BACK = "back"
    UNINSTALL = "uninstall"


def job_of(session: Session, name: str) -> Job | None:
    """Return the newest job on another machine."""
    touched = {one.format(name=name) for one in _TOUCHED}
    jobs = session.state.jobs.values()
    mine = [job for job in jobs if job.touches in touched or name in job.machines]
    return max(mine, key=lambda job: job.created_at, default=None)


def is_changing(session: Session, name: str) -> bool:
    """Return True while a job changes the engine host over there."""
    jobs = session.state.jobs.values()
    return any(job.kind in KINDS and job.touches == f"host {name}" and not job.ended for job in jobs)


class InstallModel(QObject):
    """One change of the engine host on another machine: its plan, and its start.

    Signals:
        changed: the plan or a problem is new
        started: the job has begun
    """

    changed = Signal()
    started = Signal()

    def __init__(self, session: Session, name: str, verb: Verb) -> None:
        super().__init__()
        self.session, self.name, self.verb = session, name, verb
        self.offline = False
        self.plan: RemoteInstallPlan | None = None
        self.problem: Problem | None = None
        self.starting = False
        self._read = 0

    @property
    def command(self) -> str:
        """The command that does the same."""
        verb = "update" if self.verb in {Verb.START, Verb.BACK} else self.verb.value
        words = ["sndr", "host", verb, self.name, *(["--back"] if self.verb is Verb.BACK else [])]
        return shlex.join([*words, *(["--offline"] if self.offline else [])])

    @property
    def possible(self) -> bool:
        """True where a plan is there and nothing in it stops the job."""
        if self.plan is None or self.starting:
            return False
        return not any(one.severity is Severity.ERROR for one in self.plan.findings)

    @property
    def diff(self) -> str:
        """The plan as a diff of that machine; a dollar sign stands before what is run there."""
        return diff_of(self.plan.changes if self.plan is not None else ())

    def set_offline(self, offline: bool) -> None:
        """Send the packages from here, or let the machine fetch them; the plan is made anew."""
        self.offline = offline
        self.read()

    def read(self) -> None:
        """Make the plan; nothing changes over there."""
        self.plan = self.problem = None
        self._read += 1
        number = self._read
        asked = InstallOnHost(offline=self.offline)

        async def work(client: AsyncControlClient) -> None:
            if self.verb is Verb.UNINSTALL:
                plan = await client.call(ops.PLAN_HOST_UNINSTALL, name=self.name)
            elif self.verb is Verb.BACK:
                plan = await client.call(ops.PLAN_HOST_BACK, name=self.name)
            else:
                plan = await client.call(ops.PLAN_HOST_INSTALL, asked, name=self.name)
            if number == self._read:
                self.plan = plan

        def failed(error: HostError) -> None:
            if number == self._read:
                self.problem = error.problem

        self.session.command(f"plan {self.verb} {self.name}", work, done=self.changed.emit, failed=failed)
        self.changed.emit()

    def start(self) -> None:
        """Begin the job; `started` follows, or a problem."""
        if not self.possible:
            return
        self.starting = True
        asked = InstallOnHost(offline=self.offline)

        async def work(client: AsyncControlClient) -> None:
            if self.verb is Verb.UNINSTALL:
                begun = client.call(ops.UNINSTALL_HOST, name=self.name)
            elif self.verb is Verb.BACK:
                begun = client.call(ops.HOST_BACK, name=self.name)
            elif self.verb in {Verb.START, Verb.UPDATE}:
                begun = client.call(ops.UPDATE_HOST, asked, name=self.name)
            else:
                begun = client.call(ops.INSTALL_HOST, asked, name=self.name)
            await self.session.state.take(begun)
            self.started.emit()

        def failed(error: HostError) -> None:
            self.problem = error.problem

        def done() -> None:
            self.starting = False
            self.changed.emit()

        self.session.command(f"{self.verb} {self.name}", work, done=done, failed=failed)
        self.changed.emit()
