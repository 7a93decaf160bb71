"""Turns what the host reports into notices: its own, findings, jobs that ended, and engines that failed."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject

from engine_host.protocol.engines import EngineState
from engine_host.protocol.events import NoticeEvent
from engine_host.protocol.host import updated
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from sndr_gui.host.choice import LIVE_STATES, STARTING_STATES
from sndr_gui.host.connection import Phase
from sndr_gui.host.notices import Notice
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.models.window.lifetime import replacement, run_again

_PAGES = {
    JobKind.BENCH_RUN: "bench",
    JobKind.BENCH_VERIFY: "bench",
    JobKind.ENGINE_BUILD: "home",
    JobKind.ENGINE_COMPARE: "home",
    JobKind.ENGINE_INSTALL: "engine",
    JobKind.ENGINE_PIN: "engine",
    JobKind.ENGINE_REMOVE: "engine",
    JobKind.KERNEL_PROOF: "home",
    JobKind.KV_QUALITY: "bench",
    JobKind.PATCH_BISECT: "patches",
}
"""The jobs whose end is told, and the page that each is about."""
_SHOWN = {
    JobKind.BENCH_PROFILE: "bench",
    JobKind.BENCH_SWEEP: "bench",
    JobKind.HOST_FETCH: "hosts",
    JobKind.HOST_INSTALL: "hosts",
    JobKind.HOST_SEND: "hosts",
    JobKind.HOST_UPDATE: "hosts",
    JobKind.MODEL_DOWNLOAD: "library",
}
"""Those whose page tells of the end: only the desktop is told besides."""
_TRIALS = (JobKind.PATCH_BISECT, JobKind.BENCH_SWEEP)
"""Jobs that start engines one after the other, which nobody waits for."""
_ENDED = "host ended"
_REPLACED = "host replaced"
_READY = {EngineState.READY, EngineState.BUSY}


class HostNotices(QObject):
    """Shows what the host reports as notices, whichever page is in front."""

    def __init__(self, session: Session, show: Callable[[str], object], go: Callable[[str], object]) -> None:
        """`show` opens the page of an engine, by its id; `go` a page."""
        super().__init__()
        state = session.state
        self._session, self._state, self._notices = session, state, session.notices
        self._show, self._go = show, go
        self._before: dict[str, EngineState] = {}
        self._lost: tuple[str, ...] = ()
        state.noticed.connect(self._on_notice)
        state.found.connect(self._on_finding)
        state.job_ended.connect(self._on_job)
        state.engines_changed.connect(self._on_engines)
        session.connection.replaced.connect(self._on_replaced)
        session.connection.changed.connect(self._on_link)
        state.host_changed.connect(self._on_host)

    def _on_link(self) -> None:
        """Offer another host where a command ended this one, on whichever page."""
        connection = self._session.connection
        if connection.phase is Phase.ENDED:
            # None answers any more.
            self._notices.withdraw(_REPLACED)
            self._notices.warning(
                _ENDED,
                connection.sentence,
                action_text=tr("Start again"),
                action=connection.retry,
                lasting=True,
            )
        else:
            self._notices.withdraw(_ENDED)

    def _on_replaced(self, ended: tuple[str, ...]) -> None:
        """Say that the host is another one now, and which engines ended with the one before."""
        said, self._lost = replacement(self._session, ended), ended
        if not ended:
            self._notices.info(_REPLACED, said)
            return
        self._notices.warning(
            _REPLACED,
            said,
            action_text=tr("Launch"),
            action=partial(self._go, "launch"),
            opens=partial(self._go, "launch"),
        )

    def _on_host(self) -> None:
        """Say that the host is of the version before an update, where that came before this window."""
        host = self._state.host
        if host is not None and host.replaced:
            self._notices.warning("program updated", updated())

    def _on_engines(self) -> None:
        """Say that an engine failed which no page shows; the chosen one says so where somebody looks."""
        state, before = self._state, self._before
        if run_again(self._session, self._lost):
            self._lost = ()
            self._notices.withdraw(_REPLACED)
        self._before = {engine.id: engine.state for engine in state.engines.values()}
        for engine in state.engines.values():
            was, opens = before.get(engine.id), partial(self._show, engine.id)
            if engine.state in _READY and was in STARTING_STATES and not state.live_job(*_TRIALS):
                self._tell(f"engine {engine.id}", "info", tr("{name} is ready.", name=engine.name), opens)
            if engine.state is not EngineState.FAILED or was not in LIVE_STATES:
                continue
            why = f" {engine.problem.message}" if engine.problem is not None else ""
            if engine.was_refused:
                said = tr("{name} was refused its start.{why}", name=engine.name, why=why)
            else:
                said = tr("{name} failed.{why}", name=engine.name, why=why)
            if engine is state.engine:
                self._tell(f"engine {engine.id}", "error", said, opens)
            else:
                key = f"engine {engine.id}"
                self._notices.error(key, said, action_text=tr("Show"), action=opens, opens=opens)

    def _tell(self, key: str, severity: str, said: str, opens: Callable[[], object]) -> None:
        """Tell what a page shows by itself to a person who looks at none."""
        self._notices.aside.emit(Notice(key, severity, said, opens=opens))

    def _on_notice(self, event: NoticeEvent) -> None:
        sentence = event.problem.sentence() if event.problem else event.text
        say = {"info": self._notices.info, "warning": self._notices.warning, "error": self._notices.error}
        opens = partial(self._go, "home") if event.key.startswith("alert ") else None
        say[event.severity.value](event.key, sentence, opens=opens)

    def _on_finding(self, finding: Finding) -> None:
        if finding.severity != "info":
            advice = f" {finding.fix.text}" if finding.fix else ""
            say = self._notices.error if finding.severity == "error" else self._notices.warning
            say(finding.id, finding.message + advice)

    def _on_job(self, job: Job) -> None:
        page = _PAGES.get(job.kind) or _SHOWN.get(job.kind)
        if page is None:
            return
        opens = partial(self._go, page)
        if job.state is JobState.DONE:
            took = job.ended_at - job.started_at if job.ended_at and job.started_at else None
            said = tr("{title}: done.", title=job.title)
            if took is not None:
                said = tr("{title}: done after {duration}.", title=job.title, duration=formats.duration(took))
            severity = "info"
        elif job.state is JobState.FAILED and job.error is not None:
            said = tr("{title} failed. {sentence}", title=job.title, sentence=job.error.sentence())
            severity = "error"
        else:
            return
        if job.kind in _SHOWN:
            self._tell(job.id, severity, said, opens)
        else:
            say = self._notices.info if severity == "info" else self._notices.error
            say(job.id, said, opens=opens)
