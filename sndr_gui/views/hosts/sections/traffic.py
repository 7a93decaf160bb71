"""The models that a host answers for, and the routes of this machine that lead there."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.client.request_words import readable
from engine_host.protocol.endpoint.routes import TargetStatus
from sndr_gui.models.hosts.detail import HostDetailModel
from sndr_gui.models.routes.words import STATES
from sndr_gui.views.hosts.sections.plain_table import PlainTable
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import set_text, text

_NO_MODELS = "No model answers there now. Start one with “Show” and the page Launch, or on that machine."
_NO_ROUTES = (
    "No route leads here. With one, an editor asks this machine for an ID of yours, and the engine over "
    "there answers through the connection."
)


class TrafficSection(QWidget):
    """The models over there, and the ids that lead to them."""

    def __init__(self, model: HostDetailModel, open_routes: Callable[[], object]) -> None:
        super().__init__()
        self._model = model
        models = Card("Models that can be asked")
        self.models = PlainTable("Models that can be asked")
        self.no_models = text(_NO_MODELS, "muted", wrap=True)
        self.route = CopyField(what="the command that leads a route there")
        for part in (self.models, self.no_models, self.route):
            models.body.addWidget(part)
        self.open_routes = button(
            "Open Routes",
            open_routes,
            icon="fork",
            hint="Make, move and remove routes",
            command="sndr routes list",
        )
        led = Card("Routes that lead here", self.open_routes)
        self.routes = PlainTable("Routes that lead here")
        self.no_routes = text(_NO_ROUTES, "muted", wrap=True)
        led.body.addWidget(self.routes)
        led.body.addWidget(self.no_routes)
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
            ("Model", "Context", "Asked by a route as"),
            tuple((one.id, f"{one.context:,} tokens", f"{name}/{one.id}") for one in models),
        )
        self.no_models.setVisible(not models)
        self.route.setVisible(bool(models))
        if models:
            self.route.set_content(shlex.join(["sndr", "routes", "set", "ID", f"{name}/{models[0].id}"]))
        problem = self._model.problems.get("routes")
        found = tuple(
            (status.route.id, target.name, STATES[target.state][0], _note(target))
            for status in self._model.routes or ()
            for target in status.targets
            if target.name.startswith(f"{name}/")
        )
        self.routes.show_rows(("ID", "Leads to", "State", "What helps"), found)
        reading = "Reading the routes…" if self._model.routes is None else _NO_ROUTES
        set_text(self.no_routes, readable(problem.message) if problem is not None else reading)
        self.no_routes.setVisible(not found)


def _note(target: TargetStatus) -> str:
    return " ".join(filter(None, (target.detail, target.command)))
