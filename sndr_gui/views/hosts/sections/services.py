"""The units and containers of a host: ours are installed, acted on and removed; others are shown alone."""

from __future__ import annotations

from functools import partial

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.client.request_words import readable
from engine_host.protocol.jobs import Job, JobKind, JobState
from engine_host.protocol.language import tr
from engine_host.protocol.remote.services import Service, ServiceAction, ServiceManager, ServiceState
from sndr_gui.kit.setting_words import word_of
from sndr_gui.models.hosts.actions.service_install import InstallServiceAction
from sndr_gui.models.hosts.detail import HostDetailModel
from sndr_gui.models.hosts.planned import PlannedAction, PlannedJob
from sndr_gui.models.hosts.service_log import ServiceLogModel
from sndr_gui.models.hosts.services import RemoveServiceAction, ServicesModel, command_for
from sndr_gui.views.hosts.planned import PlannedDialog
from sndr_gui.views.hosts.sections.ending import EndingDialog
from sndr_gui.views.hosts.sections.plain_table import PlainTable
from sndr_gui.views.hosts.sections.service_log import ServiceLogDialog
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import badge, set_text, text
from sndr_gui.views.widgets.layout import clear, column, row
from sndr_gui.views.widgets.problems import ProblemBox

_NONE = tr(
    "No service of ours is there. One keeps an engine running without this "
    "program: systemd, Docker or Podman starts it with the machine, and a watchdog "
    "looks after it."
)
_UNREAD = tr("Nobody has asked the machine yet.")
_TONES = {ServiceState.RUNNING: "good", ServiceState.FAILED: "bad", ServiceState.RESTARTING: "warn"}
_ACTIONS = (
    (ServiceAction.START, tr("Start"), "play", tr("Start it, and see that it answers")),
    (ServiceAction.STOP, tr("Stop"), "square", tr("Stop it")),
    (ServiceAction.RESTART, tr("Restart"), "rotate-cw", tr("Stop it and start it again")),
)
_AT_START = {
    False: (ServiceAction.ENABLE, tr("Start at boot"), "plug", tr("Start it at boot from now on")),
    True: (
        ServiceAction.DISABLE, tr("Not at boot"), "x",
        tr("Do not start it at boot; it goes on running now"),
    ),
}  # fmt: skip


class ServicesSection(QWidget):
    """The services that are kept over there."""

    def __init__(self, model: HostDetailModel) -> None:
        super().__init__()
        self._detail = model
        self.model = ServicesModel(model.hosts, model.name)
        self.read = button(
            tr("Read"),
            self.model.read,
            icon="refresh-cw",
            hint=tr("Ask the machine for its units and containers"),
            command=f"sndr host unit list {model.name}",
        )
        self.install = button(
            tr("Install…"),
            self._on_install,
            icon="download",
            hint=tr("Have a preset carried out there by systemd, Docker or Podman; its plan is shown first"),
            command=f"sndr host unit install {model.name} PRESET",
        )
        self.install.setAccessibleName(tr("Install a service on {name}", name=model.name))
        card = Card(tr("Ours"), self.install, self.read)
        self.problem = ProblemBox()
        self.nothing = text(_UNREAD, "muted", wrap=True)
        self.route_about = text("", "muted", wrap=True)
        self.route = CopyField("", tr("command of the route"), wraps=True)
        self._ours = QVBoxLayout()
        self._ours.setSpacing(14)
        self.made: dict[str, dict[str, QWidget]] = {}
        card.body.addWidget(self.problem)
        card.body.addLayout(self._ours)
        for part in (self.nothing, self.route_about, self.route):
            card.body.addWidget(part)
        self._show_route(None)
        others = Card(tr("Others"))
        self.others = PlainTable(tr("Services of others"))
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
        model.hosts.session.state.jobs_changed.connect(self._on_jobs)
        self._open_jobs: frozenset[str] = frozenset()
        if model.is_connected:
            self.model.read()
        self.model.read_presets()

    def refresh(self) -> None:
        """Show what was last read."""
        page = self.model.page
        self.read.setEnabled(self._detail.is_connected and not self.model.pending("services"))
        self.install.setEnabled(self._detail.is_connected)
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
            (one.name, one.manager.value, word_of(one.state.value), one.detail)
            for one in found
            if not one.ours
        )
        self.others.show_rows((tr("Name"), tr("Kept by"), tr("State"), tr("In its own word")), rows)
        missing = (
            [f"{one.manager.value}: {one.why}" for one in page.managers if not one.usable] if page else []
        )
        said = "\n".join(missing) or ("" if rows else tr("No other service was reported."))
        set_text(self.managers, readable(said if page is not None else _UNREAD)[:600])

    def _line(self, service: Service) -> QVBoxLayout:
        state = badge(service.state.value, _TONES.get(service.state, "muted"))
        about = [service.manager.value, service.model or service.preset or "", service.address or ""]
        about += [tr("starts at boot")] if service.enabled else []
        about += [tr("watchdog: {watchdog}", watchdog=service.watchdog)] if service.watchdog else []
        about += (
            [tr("changed there since: {changed}", changed=", ".join(service.changed))]
            if service.changed
            else []
        )
        made: dict[str, QWidget] = {}
        for action, label, icon, hint in _ACTIONS:
            made[action.value] = self._button(
                service, action.value, label, icon, hint, partial(self._on_act, service, action)
            )
        if service.manager is ServiceManager.SYSTEMD and service.enabled is not None:
            action, label, icon, hint = _AT_START[service.enabled]
            made[action.value] = self._button(
                service, action.value, label, icon, hint, partial(self.model.act, service, action)
            )
        logs = partial(self._on_logs, service)
        made["logs"] = self._button(service, "logs", tr("Log"), "terminal", tr("Follow its lines"), logs)
        remove = partial(self._on_remove, service)
        said = tr("Stop it and remove its files; its plan is shown first")
        made["remove"] = self._button(service, "remove", tr("Remove…"), "trash-2", said, remove)
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

    def _on_act(self, service: Service, action: ServiceAction) -> None:
        act = partial(self.model.act, service, action)
        stopped = service.state in (ServiceState.STOPPED, ServiceState.FAILED)
        if action in EndingDialog.asks_about and not stopped:
            EndingDialog(self.window(), self._detail.name, service, action, act).open()
        else:
            act()

    def _on_install(self) -> None:
        page = self.model.page
        usable = [one.manager for one in page.managers if one.usable] if page is not None else []
        first = usable[0] if usable else ServiceManager.SYSTEMD
        self._open(InstallServiceAction(self._detail.name, self.model.presets, first))

    def _on_remove(self, service: Service) -> None:
        self._open(RemoveServiceAction(self._detail.name, service))

    def _open(self, action: PlannedAction) -> None:
        job = PlannedJob(self._detail.hosts.session, self._detail.name, action)
        PlannedDialog(self.window(), job).open()

    def _on_logs(self, service: Service) -> None:
        ServiceLogDialog(
            self.window(), ServiceLogModel(self._detail.hosts.session, self._detail.name, service)
        ).open()

    def _show_route(self, job: Job | None) -> None:
        """Show how the endpoint here comes to answer with what a job installed."""
        done = job.result if job is not None and isinstance(job.result, dict) else {}
        route, name = done.get("route"), done.get("name")
        shown = isinstance(route, str) and bool(route)
        set_text(
            self.route_about, readable(tr("{name} answers. Let the endpoint here answer with it:", name=name))
        )
        self.route.set_content(str(route) if shown else "")
        self.route_about.setVisible(shown)
        self.route.setVisible(shown)

    def _on_jobs(self) -> None:
        touched = f"services of {self._detail.name}"
        jobs = tuple(self._detail.hosts.session.state.jobs.values())
        now = frozenset(job.id for job in jobs if job.touches == touched and not job.ended)
        if self._open_jobs - now and self._detail.is_connected:
            # What a job did is seen by asking again.
            self.model.read()
            ended = (job for job in jobs if job.id in self._open_jobs - now)
            for job in ended:
                if job.kind is JobKind.SERVICE_INSTALL and job.state is JobState.DONE:
                    self._show_route(job)
        if now != self._open_jobs:
            self._open_jobs = now
            self.refresh()
