"""Turns what the host reports into notices: its own, findings, jobs that ended, and engines that failed."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject

from engine_host.protocol.engines import EngineState
from engine_host.protocol.events import NoticeEvent
from engine_host.protocol.host import updated
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.language import ntr, tr
from engine_host.protocol.launch.plans import Finding
from sndr_gui.host.session import Session
from sndr_gui.kit import formats

_NOTIFIED = (
    JobKind.BENCH_RUN,
    JobKind.BENCH_VERIFY,
    JobKind.ENGINE_BUILD,
    JobKind.ENGINE_COMPARE,
    JobKind.ENGINE_INSTALL,
    JobKind.ENGINE_PIN,
    JobKind.ENGINE_REMOVE,
    JobKind.KERNEL_PROOF,
    JobKind.KV_QUALITY,
    JobKind.PATCH_BISECT,
)


class HostNotices(QObject):
    """Shows what the host reports as notices, whichever page is in front."""

    def __init__(self, session: Session, show: Callable[[str], object], go: Callable[[str], object]) -> None:
        """`show` opens the page of an engine, by its id; `go` a page."""
        super().__init__()
        state = session.state
        self._session, self._state, self._notices = session, state, session.notices
        self._show, self._go = show, go
        self._ran: set[str] = set()
        state.noticed.connect(self._on_notice)
        state.found.connect(self._on_finding)
        state.job_ended.connect(self._on_job)
        state.engines_changed.connect(self._on_engines)
        session.connection.replaced.connect(self._on_replaced)
        state.host_changed.connect(self._on_host)

    def _on_replaced(self, ended: tuple[str, ...]) -> None:
        """Say that the host is another one now, and which engines ended with the one before."""
        if self._session.connection.owned:
            said = tr("The engine host ended, and this window started a new one, which ends with it.")
        else:
            said = tr("The engine host ended, and another one answers now.")
        if not ended:
            self._notices.info("host replaced", said)
            return
        engines = ntr(
            "{names} ended with the old one: start it again.",
            "{names} ended with the old one: start them again.",
            len(ended),
            names=formats.listed(ended),
        )
        self._notices.warning(
            "host replaced",
            f"{said} {engines}",
            action_text=tr("Launch"),
            action=partial(self._go, "launch"),
        )

    def _on_host(self) -> None:
        """Say that the host is of the version before an update, where that came before this window."""
        host = self._state.host
        if host is not None and host.replaced:
            self._notices.warning("program updated", updated())

    def _on_engines(self) -> None:
        """Say that an engine failed which no page shows; the chosen one says so where somebody looks."""
        state = self._state
        for engine in state.engines.values():
            if engine.state is EngineState.FAILED and engine.id in self._ran and engine is not state.engine:
                why = f" {engine.problem.message}" if engine.problem is not None else ""
                self._notices.error(
                    f"failed {engine.id}",
                    tr("{name} failed.{why}", name=engine.name, why=why),
                    action_text=tr("Show"),
                    action=partial(self._show, engine.id),
                )
        self._ran = {engine.id for engine in state.live}

    def _on_notice(self, event: NoticeEvent) -> None:
        sentence = event.problem.sentence() if event.problem else event.text
        say = {"info": self._notices.info, "warning": self._notices.warning, "error": self._notices.error}
        say[event.severity.value](event.key, sentence)

    def _on_finding(self, finding: Finding) -> None:
        if finding.severity != "info":
            advice = f" {finding.fix.text}" if finding.fix else ""
            say = self._notices.error if finding.severity == "error" else self._notices.warning
            say(finding.id, finding.message + advice)

    def _on_job(self, job: Job) -> None:
        if job.kind not in _NOTIFIED:
            return
        if job.state is JobState.DONE:
            took = job.ended_at - job.started_at if job.ended_at and job.started_at else None
            said = tr("{title}: done.", title=job.title)
            if took is not None:
                said = tr("{title}: done after {duration}.", title=job.title, duration=formats.duration(took))
            self._notices.info(job.id, said)
        elif job.state is JobState.FAILED and job.error is not None:
            self._notices.error(
                job.id, tr("{title} failed. {sentence}", title=job.title, sentence=job.error.sentence())
            )
