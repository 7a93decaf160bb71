"""The models that a host answers for, and the routes of this machine that lead there."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from functools import partial

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.client.request_words import readable
from engine_host.protocol.endpoint.routes import TargetStatus
from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import RemoteMode
from sndr_gui.kit import formats
from sndr_gui.models.hosts.actions.staging import PromoteAction, RollbackAction, StageAction
from sndr_gui.models.hosts.detail import HostDetailModel
from sndr_gui.models.hosts.planned import PlannedAction, PlannedJob
from sndr_gui.models.routes.words import STATES
from sndr_gui.views.hosts.planned import PlannedDialog
from sndr_gui.views.hosts.sections.plain_table import PlainTable
from sndr_gui.views.widgets.buttons import Button, button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import clear, row

_NO_MODELS = tr("No model answers there now. Start one with “Show” and the page Launch, or on that machine.")
_NO_MODELS_AGENTLESS = tr(
    "No model answers there now. Nothing of ours is installed there: start an "
    "engine on that machine, and it is found when its facts are read."
)
_NO_ROUTES = tr(
    "No route leads here. With one, an editor asks this machine for an ID of "
    "yours, and the engine over there answers through the connection."
)


class TrafficSection(QWidget):
    """The models over there, and the ids that lead to them."""

    def __init__(self, model: HostDetailModel, open_routes: Callable[[], object]) -> None:
        super().__init__()
        self._model = model
        models = Card(tr("Models that can be asked"))
        self.models = PlainTable(tr("Models that can be asked"))
        self.no_models = text(_NO_MODELS, "muted", wrap=True)
        self.route = CopyField(what=tr("the command that leads a route there"))
        name = model.name
        self.stage = button(
            tr("Stage…"), self._on_stage, icon="rocket",
            hint=tr("Start an engine there with no route to it; its plan is shown first"),
            command=f"sndr host stage {name} PRESET",
        )  # fmt: skip
        self.promote = button(
            tr("Promote…"), self._on_promote, icon="upload",
            hint=tr("Lead a public ID to an engine there after real requests were answered"),
            command=f"sndr host promote {name} ID ENGINE",
        )  # fmt: skip
        for part in (self.models, self.no_models, self.route, Flow(self.stage, self.promote)):
            models.body.addWidget(part)
        self._backs = QVBoxLayout()
        self._backs.setSpacing(6)
        self.backs: dict[str, Button] = {}
        self.open_routes = button(
            tr("Open Routes"),
            open_routes,
            icon="fork",
            hint=tr("Make, move and remove routes"),
            command="sndr routes list",
        )
        led = Card(tr("Routes that lead here"), self.open_routes)
        self.routes = PlainTable(tr("Routes that lead here"))
        self.no_routes = text(_NO_ROUTES, "muted", wrap=True)
        led.body.addWidget(self.routes)
        led.body.addWidget(self.no_routes)
        led.body.addLayout(self._backs)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(14)
        lines.addWidget(models)
        lines.addWidget(led)

    def refresh(self) -> None:
        """Show what is known now."""
        remote, name = self._model.remote, self._model.name
        models = remote.models if remote is not None else ()
        self.models.show_rows(
            (tr("Model"), tr("Context"), tr("Asked by a route as")),
            tuple(
                (one.id, tr("{context} tokens", context=formats.number(one.context)), f"{name}/{one.id}")
                for one in models
            ),
        )
        agentless = remote is not None and remote.mode is RemoteMode.AGENTLESS
        set_text(self.no_models, _NO_MODELS_AGENTLESS if agentless else _NO_MODELS)
        self.no_models.setVisible(not models)
        self.route.setVisible(bool(models))
        if models:
            self.route.set_content(shlex.join(["sndr", "routes", "set", "ID", f"{name}/{models[0].id}"]))
        ours = remote is not None and remote.mode is RemoteMode.ENGINE_HOST
        self.stage.setVisible(ours)
        self.stage.setEnabled(self._model.is_connected)
        self.promote.setEnabled(self._model.is_connected and bool(models))
        self._show_promotions()
        problem = self._model.problems.get("routes")
        found = tuple(
            (status.route.id, target.name, STATES[target.state][0], _note(target))
            for status in self._model.routes or ()
            for target in status.targets
            if target.name.startswith(f"{name}/")
        )
        self.routes.show_rows(("ID", tr("Leads to"), tr("State"), tr("Note")), found)
        reading = tr("Reading the routes…") if self._model.routes is None else _NO_ROUTES
        set_text(self.no_routes, readable(problem.message) if problem is not None else reading)
        self.no_routes.setVisible(not found)

    def _show_promotions(self) -> None:
        promoted = {one.id: one for one in self._model.promotions}
        if list(promoted) != list(self.backs):
            clear(self._backs)
            self.backs = {}
            for public_id, one in promoted.items():
                made = button(
                    tr("Roll back…"), partial(self._open, RollbackAction(public_id)), icon="undo-2",
                    hint=tr("Lead it where it led before; its plan is shown first"),
                    command=shlex.join(["sndr", "host", "rollback", public_id]),
                )  # fmt: skip
                made.setAccessibleName(tr("Roll back {public_id}", public_id=public_id))
                self.backs[public_id] = made
                ago = formats.age(max(0.0, time.time() - one.at))
                said = readable(
                    tr(
                        "{public_id} was promoted to {target}, {ago}.",
                        public_id=public_id,
                        target=one.target,
                        ago=ago,
                    )
                )
                self._backs.addLayout(row(text(said, "muted", wrap=True), made))
        for made in self.backs.values():
            made.setEnabled(self._model.hosts.connected)

    def _on_stage(self) -> None:
        session = self._model.hosts.fleet.known_session(self._model.name)
        page = session.state.models if session is not None else None
        known = tuple(one.id for one in page.models) if page is not None else ()
        self._open(StageAction(self._model.name, known))

    def _on_promote(self) -> None:
        remote = self._model.remote
        engines = tuple(one.id for one in remote.models) if remote is not None else ()
        self._open(PromoteAction(self._model.name, engines, self._model.ids))

    def _open(self, action: PlannedAction) -> None:
        job = PlannedJob(self._model.hosts.session, self._model.name, action)
        PlannedDialog(self.window(), job).open()


def _note(target: TargetStatus) -> str:
    return " ".join(filter(None, (target.detail, target.command)))
