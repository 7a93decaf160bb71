"""Routes: a card for each public model id, what it leads to, and moving it."""

from __future__ import annotations

import time

from pydantic import ValidationError
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from engine_host.protocol.endpoint.routes import CutOver, RouteStatus
from engine_host.protocol.jobs import Job, JobState
from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.models.routes.page import RoutesModel
from sndr_gui.views.engine.stages import JobView
from sndr_gui.views.routes.dialog import RouteDialog
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card, EmptyState
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import badge, set_text, text
from sndr_gui.views.widgets.layout import clear, column
from sndr_gui.views.widgets.page import Page
from sndr_gui.views.widgets.problems import ProblemBox

_ABOUT = tr(
    "A route is a model ID of your own. Editors keep it while you change the "
    "engine behind it, share it between several engines, or lead it to a provider."
)


class RoutesView(Page):
    """The page of routes."""

    def __init__(self, model: RoutesModel) -> None:
        super().__init__(tr("Routes"), scrolls=True)
        self.model = model
        self.new = button(
            tr("New route"), self.add, icon="plus", kind="primary", command="sndr routes set ID ENGINE"
        )
        self.tools.addWidget(self.new)
        self.problem = ProblemBox()
        self._list = QVBoxLayout()
        self._list.setSpacing(14)
        listed = QWidget()
        lines = QVBoxLayout(listed)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.addLayout(self._list)
        lines.addStretch(1)
        self._empty = EmptyState(
            "fork", tr("No routes yet"), _ABOUT, CopyField("sndr routes set ID ENGINE", tr("the command"))
        )
        self._stack = QStackedWidget()
        self._stack.addWidget(listed)
        self._stack.addWidget(self._empty)
        self.body.addWidget(self.problem)
        self.body.addWidget(self._stack, 1)
        self.cards: dict[str, RouteCard] = {}
        self.dialog: RouteDialog | None = None
        model.changed.connect(self.refresh)
        model.revealed.connect(self._reveal)
        self.refresh()

    def set_shown(self, shown: bool) -> None:
        self.model.set_shown(shown)

    def add(self) -> None:
        """Ask for a new route."""
        self._open(RouteDialog(self, self.model, None, moves=False))

    def edit(self, status: RouteStatus) -> None:
        """Ask where a route is to lead."""
        self._open(RouteDialog(self, self.model, status, moves=False))

    def move_route(self, status: RouteStatus) -> None:
        """Ask where a route is to lead after a trial."""
        self._open(RouteDialog(self, self.model, status, moves=True))

    def _open(self, dialog: RouteDialog) -> None:
        self.dialog = dialog
        dialog.finished.connect(self._on_closed)
        dialog.open()

    def _on_closed(self) -> None:
        self.dialog = None

    def refresh(self) -> None:
        """Show the routes of now."""
        model = self.model
        self.subtitle.setText(model.subtitle)
        self.new.setEnabled(model.connected)
        self.problem.setVisible(model.problem is not None)
        if model.problem is not None:
            self.problem.show_problem(model.problem)
        ids = [status.route.id for status in model.routes]
        if ids != list(self.cards):
            clear(self._list)
            self.cards = {name: RouteCard(self, name) for name in ids}
            for card in self.cards.values():
                self._list.addWidget(card)
        for status in model.routes:
            self.cards[status.route.id].show_route(status, model.job(status.route))
        self._stack.setCurrentIndex(0 if ids else 1)
        self._reveal()

    def _reveal(self) -> None:
        """Bring the route that somebody wants to see into sight, with the focus on Edit."""
        card = self.cards.get(self.model.wanted)
        if card is not None and self.isVisible():
            self.model.wanted = ""
            self.bring_into_sight(card, card.edit)


class RouteCard(Card):
    """One route: its targets with their states, its last cut-over, and what can be done with it."""

    def __init__(self, page: RoutesView, route_id: str) -> None:
        self._state = badge("")
        super().__init__(route_id, self._state)
        self._page, self._model, self._id = page, page.model, route_id
        self._status: RouteStatus | None = None
        self._shown: tuple[object, ...] = ()
        self._targets = QVBoxLayout()
        self._targets.setSpacing(6)
        self._job = JobView(tr("cut-over"))
        self._job.cancel.clicked.connect(self._on_cancel)
        self._evidence = text("", "muted", wrap=True)
        model = page.model
        self.move_button = button(
            tr("Cut over…"),
            self._on_move,
            icon="refresh-cw",
            hint=tr("Try another target with real requests, and lead the route there when all are answered"),
            command=f"sndr routes cutover {route_id} ENGINE",
        )
        self.back = button(
            tr("Back"),
            lambda: model.back(route_id),
            icon="undo-2",
            hint=tr("Lead the route where it led before"),
            command=f"sndr routes back {route_id}",
        )
        self.edit = button(tr("Edit…"), self._on_edit, command=f"sndr routes set {route_id} ENGINE")
        self.remove = button(
            tr("Remove"),
            lambda: model.remove(route_id),
            icon="trash-2",
            kind="danger",
            hint=tr("Forget the route"),
            command=f"sndr routes remove {route_id}",
        )
        for made in (self.move_button, self.back, self.edit, self.remove):
            made.setAccessibleName(f"{made.text().rstrip('…')} {route_id}")
        self.body.addLayout(self._targets)
        self.body.addWidget(self._job)
        self.body.addWidget(self._evidence)
        self.body.addWidget(Flow(self.move_button, self.back, self.edit, self.remove))

    def show_route(self, status: RouteStatus, job: Job | None) -> None:
        """Show a route and its newest cut-over."""
        self._status = status
        model = self._model
        set_text(self._state, model.answers(status))
        shown = (status.targets, status.findings)
        if shown != self._shown:
            self._shown = shown
            clear(self._targets)
            self._fill(status)
        self._job.setVisible(job is not None)
        evidence = "" if job is None else _evidence(job)
        self._evidence.setVisible(bool(evidence))
        set_text(self._evidence, evidence)
        moving = job is not None and not job.ended
        if job is not None:
            self._job.show_job(job, model.pending(f"cancel {job.id}"))
        for made in (self.move_button, self.edit):
            made.setEnabled(model.connected and not moving)
        before = status.route.before
        self.back.setEnabled(model.connected and before is not None and not model.pending(f"back {self._id}"))
        self.remove.setEnabled(model.connected and not moving and not model.pending(f"remove {self._id}"))

    def _fill(self, status: RouteStatus) -> None:
        for target in status.targets:
            word, tone = self._model.state_of(target.state)
            line = Flow(text(target.name), badge(word, tone))
            parts: list[QWidget] = [line]
            if target.detail:
                parts.append(text(target.detail, "muted", wrap=True))
            if target.answered_at is not None:
                parts.append(
                    text(
                        tr("answered last at {moment}", moment=_moment(target.answered_at)),
                        "muted",
                        wrap=True,
                    )
                )
            if target.failed_at is not None:
                told = tr(
                    "failed last at {moment}: {failure}",
                    moment=_moment(target.failed_at),
                    failure=target.failure,
                )
                parts.append(text(told, "muted", wrap=True))
            elif target.failure:
                parts.append(text(target.failure, "muted", wrap=True))
            self._targets.addLayout(column(*parts, spacing=2))
            if target.command:
                self._targets.addWidget(
                    CopyField(target.command, tr("the command for {name}", name=target.name))
                )
        for finding in status.findings:
            box = ProblemBox(finding.severity.value)
            box.show_finding(finding)
            self._targets.addWidget(box)

    def _on_cancel(self) -> None:
        status = self._status
        if status is not None and (job := self._model.job(status.route)) is not None:
            self._model.cancel(job.id)

    def _on_edit(self) -> None:
        if self._status is not None:
            self._page.edit(self._status)

    def _on_move(self) -> None:
        if self._status is not None:
            self._page.move_route(self._status)


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _evidence(job: Job) -> str:
    """The requests of a cut-over that was done, with what each showed."""
    if job.state is not JobState.DONE:
        return ""
    try:
        checks = CutOver.model_validate(job.result).checks
    except ValidationError:
        return ""
    return formats.strip_backticks("\n".join(f"{one.target}, {one.name}: {one.detail}" for one in checks))
