"""The question before a service that runs on another machine is stopped or started again."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.client.request_words import readable
from engine_host.protocol.language import tr
from engine_host.protocol.remote.services import Service, ServiceAction
from sndr_gui.models.hosts.services import command_for
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import row

_ASKED = {
    ServiceAction.STOP: (tr("Stop {name} on {host}?"), tr("Stop")),
    ServiceAction.RESTART: (tr("Restart {name} on {host}?"), tr("Restart")),
}
_CUTS = tr("Answers that it is writing break off, for everybody who asks it.")
_STAYS = tr("It stays stopped until somebody starts it.")


class EndingDialog(Dialog):
    """Says what stopping or restarting a service ends; Return and Escape leave it running."""

    asks_about = frozenset(_ASKED)

    def __init__(
        self, parent: QWidget, host: str, service: Service, action: ServiceAction, agreed: Callable[[], None]
    ) -> None:
        title, verb = _ASKED[action]
        super().__init__(parent, readable(title.format(name=service.name, host=host)))
        self.setMinimumWidth(460)
        self._agreed = agreed
        said = f"{_CUTS} {_STAYS}" if action is ServiceAction.STOP else _CUTS
        self.end = button(verb, self._on_end, kind="danger")
        self.stay = button(tr("Leave it running"), self.reject)
        self.stay.setDefault(True)
        outer = QVBoxLayout(self)
        outer.setSpacing(12)
        outer.addWidget(text(self.windowTitle(), name="big", wrap=True))
        outer.addWidget(text(said, "muted", wrap=True))
        outer.addWidget(CopyField(command_for(action.value, host, service), tr("equivalent command")))
        outer.addLayout(row(None, self.stay, self.end))
        self.setAccessibleDescription(said)
        self.stay.setFocus()

    def _on_end(self) -> None:
        self.accept()
        self._agreed()
