"""A bisection as the window sees it: what it will start, equivalent command, its result."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from pydantic import ValidationError
from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.engines import Engine
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.launch.plans import BisectRequest, BisectResult, EngineKind, LaunchRequest
from engine_host.protocol.operations import table as ops
from engine_host.protocol.patches import BisectCheck, PatchPage
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.models.window.actions import request_of


@dataclass(frozen=True)
class TrialRow:
    """One start of a bisection, as shown."""

    number: int
    passed: bool
    patches: int
    time: str
    why: str


def _bisects(start: str) -> str:
    """Return the command that bisects what another one starts, without its check; empty for no start."""
    words = shlex.split(start)
    # A bisection takes the place of what runs anyhow, and keeps no trial.
    while words[-1:] in (["--keep"], ["--replace"]):
        words.pop()
    bisect = ["sndr", "patches", "bisect"]
    match words:
        case ["sndr", "run", *rest]:
            return shlex.join([*bisect, *rest])
        case ["sndr", "launch", *rest]:
            return shlex.join([*bisect, "--preset", *rest])
    return ""


class BisectionModel(QObject):
    """Prepares, starts and follows bisections.

    Signals:
        changed: the command line, the job, or whether one is being started, is new
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.request: LaunchRequest | None = None
        self.sending = False
        self._run = ""
        self._dismissed = ""
        self._cancelling = "none"
        session.state.jobs_changed.connect(self.changed)
        session.state.engines_changed.connect(self.changed)

    @property
    def engine(self) -> Engine | None:
        """The chosen engine, when it is one with patches."""
        engine = self.session.state.engine
        return engine if engine is not None and engine.engine == EngineKind.VLLM else None

    @property
    def can_start(self) -> bool:
        """True while a bisection can be started."""
        job = self.newest
        busy = job is not None and not job.ended
        return self.session.connection.connected and self.engine is not None and not busy and not self.sending

    def prepare(self, catalogue: PatchPage | None) -> None:
        """Take the chosen engine's start for the next bisection, and ask for its command line."""
        engine = self.engine
        if engine is None:
            return
        request = request_of(engine)
        # What is on anyhow needs no word; only what somebody added has to be named.
        usual = {patch.id for patch in (catalogue.patches if catalogue else ()) if patch.switch == "on"}
        added = tuple(name for name in request.patches.on if name not in usual)
        patches = request.patches.model_copy(update={"on": added})
        # Its trials take the place of the one that runs; what runs beside it goes on.
        there = self.session.state.live_named(engine.name)
        ended = (there.name,) if there is not None else None
        request = self.request = request.model_copy(update={"patches": patches, "instead_of": ended})
        self._run = ""

        async def work(client: AsyncControlClient) -> None:
            plan = await client.call(ops.PLAN, request)
            self._run = plan.command
            self.changed.emit()

        self.session.read("plan the bisection", work)

    def command(self, check: BisectCheck | None) -> str:
        """Return the equivalent command; empty while it is not known."""
        words = _bisects(self._run)
        if check is None or not words:
            return ""
        if check.command is not None:
            return f"{words} -- {shlex.join(check.command)}"
        return f"{words} --check {check.builtin}"

    def start(self, check: BisectCheck) -> None:
        """Find the patch that makes the prepared start fail a check."""
        if self.request is None or self.sending:
            return
        request = BisectRequest(launch=self.request, check=check)
        self.sending = True
        self.changed.emit()

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(ops.BISECT_PATCHES, request))

        def done() -> None:
            self.sending = False
            self.changed.emit()

        self.session.command("bisection", work, done=done)

    # What came of it.

    @property
    def newest(self) -> Job | None:
        """The newest bisection."""
        return self.session.state.newest_job(JobKind.PATCH_BISECT)

    @property
    def job(self) -> Job | None:
        """The newest bisection, until the person puts its result away."""
        job = self.newest
        return None if job is None or job.id == self._dismissed else job

    @property
    def result(self) -> BisectResult | None:
        """The result of the newest bisection."""
        job = self.job
        if job is None or job.state is not JobState.DONE:
            return None
        try:
            return BisectResult.model_validate(job.result)
        except ValidationError:
            # A host of another version; the job itself still says that it is done.
            return None

    def trials(self) -> tuple[TrialRow, ...]:
        """Return the finished starts of the newest bisection."""
        result = self.result
        return tuple(
            TrialRow(number, one.passed, len(one.patches), formats.duration(one.seconds), one.why)
            for number, one in enumerate(result.trials if result else (), start=1)
        )

    @property
    def cancelling(self) -> bool:
        """True once the bisection was asked to end."""
        return self._cancelling == (self.newest.id if self.newest is not None else "")

    def cancel(self) -> None:
        """Give the bisection up; the host puts back what ran."""
        job = self.newest
        if job is None or job.ended or self.cancelling:
            return
        name = self._cancelling = job.id
        self.changed.emit()

        async def work(client: AsyncControlClient) -> None:
            await self.session.state.take(client.call(ops.CANCEL_JOB, id=name))

        self.session.command("cancel the bisection", work, failed=self._on_not_cancelled)

    def _on_not_cancelled(self, error: HostError) -> None:
        self._cancelling = "none"
        self.session.notices.error("bisection", str(error))
        self.changed.emit()

    def dismiss(self) -> None:
        """Dismiss the result."""
        job = self.newest
        if job is not None and job.ended:
            self._dismissed = job.id
            self.changed.emit()
