"""The engine host over there: its version, and its install, update, way back and removal, and its vLLM."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from engine_host.protocol.remote.hosts import RemoteMode
from sndr_gui.kit import formats
from sndr_gui.kit.typed_commands import mark_host
from sndr_gui.models.hosts.cards import HostCard
from sndr_gui.models.hosts.detail import HostDetailModel
from sndr_gui.models.hosts.pin import HostPinModel
from sndr_gui.views.engine.again import StartAgain
from sndr_gui.views.hosts.actions import HostButtons
from sndr_gui.views.hosts.sections.pin import PinCard
from sndr_gui.views.hosts.sections.plain_table import PlainTable
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.problems import Findings

_AGENTLESS = tr(
    "Nothing of ours is installed there: facts are read by short programs that "
    "change nothing, and engines that run already are asked through the "
    "connection. “Change…” in Facts lets our engine host work there."
)
_ABOUT = tr(
    "Our engine host there lets every page be about that machine. It needs no root "
    "and opens no port; each change shows its plan as a diff first, and the "
    "version before stays one step away."
)


class EngineHostSection(QWidget):
    """Its version, and the actions that change it."""

    def __init__(self, model: HostDetailModel) -> None:
        super().__init__()
        self._model = model
        card = Card(tr("Engine host"))
        self.about = text("", "muted", wrap=True)
        self.table = PlainTable(tr("Engine host"))
        self.findings = Findings(lambda _finding: None, lambda _fix: False)
        self.again: StartAgain | None = None
        self._again_place = QVBoxLayout()
        self.buttons = HostButtons(
            model.hosts, model.name, ("install", "start", "update", "back", "uninstall")
        )
        for part in (self.about, self.table, self.findings):
            card.body.addWidget(part)
        card.body.addLayout(self._again_place)
        card.body.addWidget(self.buttons)
        self.pin = PinCard(HostPinModel(model.hosts.fleet, model.name))
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(14)
        lines.addWidget(card)
        lines.addWidget(self.pin)

    def show_card(self, card: HostCard) -> None:
        """Offer what is possible now."""
        self.buttons.show_card(card)

    def refresh(self) -> None:
        """Show what is known now."""
        remote = self._model.remote
        if remote is None:
            return
        ours = remote.mode is RemoteMode.ENGINE_HOST
        set_text(self.about, _ABOUT if ours else _AGENTLESS)
        here = self._model.hosts.session.state.host
        rows = (
            (tr("Version there"), remote.version or formats.UNMEASURED),
            (tr("Version here"), here.program if here is not None else formats.UNMEASURED),
            (tr("Protocol there"), remote.protocol or formats.UNMEASURED),
        )
        self.table.show_rows((), rows if ours else ())
        self.buttons.setVisible(ours)
        self.pin.setVisible(ours)
        self.pin.refresh()
        self.findings.show_findings(remote.findings)
        self._show_again()

    def _show_again(self) -> None:
        """Offer what ran there last, as Home of that host does, while nothing runs there."""
        last = self._model.hosts.last_ran(self._model.name)
        if self.again is None and last is not None:
            self.again = StartAgain(last)
            mark_host(self.again, self._model.name)
            self._again_place.addLayout(row(self.again, None))
        if self.again is not None:
            self.again.refresh(self._model.is_connected)
