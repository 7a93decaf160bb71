"""The pin of vLLM on another machine as its engine host tells it, and the job that changes it."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.engines import PinPlan, PinVllm
from engine_host.protocol.errors import Problem
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.operations import table as ops
from sndr_gui.host.fleet import Fleet
from sndr_gui.host.session import Session


class HostPinModel(QObject):
    """Reads the pin over there; a job that ended is read anew.

    Signals:
        changed: the pin, a problem or the job is new
    """

    changed = Signal()

    def __init__(self, fleet: Fleet, name: str) -> None:
        super().__init__()
        self._fleet, self.name = fleet, name
        self.plan: PinPlan | None = None
        self.versions: tuple[str, ...] = ()
        self.problem: Problem | None = None
        self._reading = False
        self._dismissed = ""
        self._listens: Session | None = None
        self._was_open = False

    @property
    def session(self) -> Session | None:
        """The session with the engine host over there, where there is one."""
        session = self._fleet.known_session(self.name)
        if session is not None and session is not self._listens:
            self._listens = session
            session.state.jobs_changed.connect(self._on_jobs)
        return session

    @property
    def job(self) -> Job | None:
        """The newest change of the pin; None for one that was put away."""
        session = self.session
        jobs = session.state.jobs.values() if session is not None else ()
        mine = [one for one in jobs if one.kind is JobKind.ENGINE_PIN]
        newest = max(mine, key=lambda one: one.created_at, default=None)
        return None if newest is None or newest.id == self._dismissed else newest

    @property
    def reading(self) -> bool:
        """True while the engine host there is asked."""
        return self._reading

    def read(self) -> None:
        """Ask the engine host there which vLLM its starts use; nothing changes."""
        session = self.session
        if session is None or self._reading:
            return
        self._reading, self.problem = True, None

        async def work(client: AsyncControlClient) -> None:
            self.plan = await client.call(ops.PLAN_PIN, PinVllm())
            page = await client.call(ops.INSTALLATIONS)
            self.versions = tuple(one.id for one in page.installations)

        def failed(error: HostError) -> None:
            self.problem = error.problem

        def done() -> None:
            self._reading = False
            self.changed.emit()

        session.command("pin of vLLM", work, done=done, failed=failed)
        self.changed.emit()

    def cancel(self) -> None:
        """Cancel the change; put one away that has ended."""
        session, job = self.session, self.job
        if session is None or job is None:
            return
        if job.ended:
            self._dismissed = job.id
            self.changed.emit()
            return

        async def work(client: AsyncControlClient) -> None:
            await session.state.take(client.call(ops.CANCEL_JOB, id=job.id))

        session.command("cancel the pin", work)

    def _on_jobs(self) -> None:
        job = self.job
        is_open = job is not None and not job.ended
        if self._was_open and not is_open:
            self.read()
        self._was_open = is_open
        self.changed.emit()
