"""The units and containers of a host: state, start, stop, log and removal of ours; others are shown alone."""

from __future__ import annotations

from functools import partial

from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from engine_host.client.request_words import readable
from engine_host.protocol.remote.services import Service, ServiceAction, ServiceLogs, ServiceState
from sndr_gui.models.hosts.detail import HostDetailModel
from sndr_gui.models.hosts.planned import PlannedJob
from sndr_gui.models.hosts.services import RemoveServiceAction, ServicesModel, command_for
from sndr_gui.views.hosts.planned import PlannedDialog
from sndr_gui.views.hosts.sections.plain_table import PlainTable
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import badge, set_text, text
from sndr_gui.views.widgets.layout import clear, column, row
from sndr_gui.views.widgets.problems import ProblemBox

_NONE = (
    "No service of ours is there. One keeps an engine running without this program: systemd, Docker or "
    "Podman starts it with the machine, and a watchdog looks after it."
)
_UNREAD = "Nobody has asked the machine yet."
_TONES = {ServiceState.RUNNING: "good", ServiceState.FAILED: "bad", ServiceState.RESTARTING: "warn"}
_ACTIONS = (
    (ServiceAction.START, "Start", "play", "Start it, and see that it answers"),
    (ServiceAction.STOP, "Stop", "square", "Stop it"),
    (ServiceAction.RESTART, "Restart", "rotate-cw", "Stop it and start it again"),
)


class ServicesSection(QWidget):
    """The services that are kept over there."""

    def __init__(self, model: HostDetailModel) -> None:
        super().__init__()
        self._detail = model
        self.model = ServicesModel(model.hosts, model.name)
        self.read = button(
            "Read",
            self.model.read,
            icon="refresh-cw",
            hint="Ask the machine for its units and containers",
            command=f"sndr host unit list {model.name}",
        )
        card = Card("Ours", self.read)
        self.problem = ProblemBox()
        self.nothing = text(_UNREAD, "muted", wrap=True)
        self.install = CopyField(f"sndr host unit install {model.name} PRESET", "the command")
        self._ours = QVBoxLayout()
        self._ours.setSpacing(14)
        self.made: dict[str, dict[str, QWidget]] = {}
        card.body.addWidget(self.problem)
        card.body.addLayout(self._ours)
        card.body.addWidget(self.nothing)
        card.body.addWidget(self.install)
        others = Card("Others")
        self.others = PlainTable("Services of others")
        self.managers = text("", "muted", wrap=True)
        others.body.addWidget(self.others)
        others.body.addWidget(self.managers)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(14)
        lines.addWidget(card)
        lines.addWidget(others)
        self._shown: object = None
        self.model.changed.connect(self.refresh)
        self.model.logs_read.connect(self._on_logs)
        model.hosts.session.state.jobs_changed.connect(self._on_jobs)
        self._open_jobs: frozenset[str] = frozenset()
        if model.is_connected:
            self.model.read()

    def refresh(self) -> None:
        """Show what was last read."""
        page = self.model.page
        self.read.setEnabled(self._detail.is_connected and not self.model.pending("services"))
        self.problem.setVisible(self.model.problem is not None)
        if self.model.problem is not None:
            self.problem.show_problem(self.model.problem)
        found = page.services if page is not None else ()
        ours = tuple(one for one in found if one.ours)
        if ours != self._shown:
            self._shown = ours
            clear(self._ours)
            self.made = {}
            for one in ours:
                self._ours.addLayout(self._line(one))
        for service in ours:
            for word, made in self.made[service.name].items():
                busy = self.model.pending(f"{word} {service.name}") or bool(self._open_jobs)
                made.setEnabled(self._detail.is_connected and (word == "logs" or not busy))
        set_text(self.nothing, _UNREAD if page is None else _NONE)
        self.nothing.setVisible(not ours)
        rows = tuple(
            (one.name, one.manager.value, one.state.value, one.detail) for one in found if not one.ours
        )
        self.others.show_rows(("Name", "Kept by", "State", "In its own word"), rows)
        missing = (
            [f"{one.manager.value}: {one.why}" for one in page.managers if not one.usable] if page else []
        )
        said = "\n".join(missing) or ("" if rows else "No other service is told.")
        set_text(self.managers, readable(said if page is not None else _UNREAD)[:600])

    def _line(self, service: Service) -> QVBoxLayout:
        state = badge(service.state.value, _TONES.get(service.state, "muted"))
        about = [service.manager.value, service.model or service.preset or "", service.address or ""]
        about += ["starts with the machine"] if service.enabled else []
        about += [f"watchdog: {service.watchdog}"] if service.watchdog else []
        about += [f"changed there since: {', '.join(service.changed)}"] if service.changed else []
        made: dict[str, QWidget] = {}
        for action, label, icon, hint in _ACTIONS:
            made[action.value] = self._button(
                service, action.value, label, icon, hint, partial(self.model.act, service, action)
            )
        logs = partial(self.model.read_logs, service)
        made["logs"] = self._button(service, "logs", "Log", "terminal", "Show its newest lines", logs)
        remove = partial(self._on_remove, service)
        said = "Stop it and remove its files; its plan is shown first"
        made["remove"] = self._button(service, "remove", "Remove…", "trash-2", said, remove)
        self.made[service.name] = made
        return column(
            row(text(readable(service.name), name="h2"), state, None),
            text(readable("  ·  ".join(filter(None, about)))[:400], "muted", wrap=True),
            Flow(*made.values()),
            spacing=6,
        )

    def _button(
        self, service: Service, verb: str, label: str, icon: str, hint: str, clicked: partial[None]
    ) -> QWidget:
        made = button(
            label, lambda: clicked(), icon=icon, hint=hint,
            command=command_for(verb, self._detail.name, service),
        )  # fmt: skip
        made.setAccessibleName(f"{label.rstrip('…')} {service.name}")
        return made

    def _on_remove(self, service: Service) -> None:
        action = RemoveServiceAction(self._detail.name, service)
        job = PlannedJob(self._detail.hosts.session, self._detail.name, action)
        PlannedDialog(self.window(), job).open()

    def _on_logs(self, logs: ServiceLogs) -> None:
        ServiceLogDialog(self.window(), logs).open()

    def _on_jobs(self) -> None:
        touched = f"services of {self._detail.name}"
        jobs = self._detail.hosts.session.state.jobs.values()
        now = frozenset(job.id for job in jobs if job.touches == touched and not job.ended)
        if self._open_jobs - now and self._detail.is_connected:
            # What a job did is seen by asking again.
            self.model.read()
        if now != self._open_jobs:
            self._open_jobs = now
            self.refresh()


class ServiceLogDialog(Dialog):
    """The newest lines of a service."""

    def __init__(self, parent: QWidget, logs: ServiceLogs) -> None:
        super().__init__(parent, f"Log of {logs.name} on {logs.host}")
        self.resize(820, 560)
        lines = "\n".join(readable(one.text) for one in logs.lines)
        self.content = QPlainTextEdit(lines)
        self.content.setObjectName("mono")
        self.content.setReadOnly(True)
        self.content.setTabChangesFocus(True)
        self.content.setPlaceholderText(readable(logs.note) or "It has written nothing yet.")
        self.content.setAccessibleName(f"Log of {logs.name}")
        self.content.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        close = button("Close", self.accept, kind="primary")
        close.setDefault(True)
        parts = QVBoxLayout(self)
        parts.setContentsMargins(20, 18, 20, 18)
        parts.setSpacing(12)
        parts.addWidget(self.content, 1)
        parts.addWidget(CopyField(f"sndr host logs {logs.host} {logs.name} --follow", "equivalent command"))
        parts.addLayout(row(None, close))
        self.content.moveCursor(self.content.textCursor().MoveOperation.End)
