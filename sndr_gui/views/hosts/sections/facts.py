"""All facts of a host with their age, and what a person keeps about it."""

from __future__ import annotations

import time

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.models.hosts.change import FIELDS
from sndr_gui.models.hosts.detail import HostDetailModel
from sndr_gui.models.hosts.facts import fact_parts
from sndr_gui.views.hosts.changing import ChangeHostDialog
from sndr_gui.views.hosts.sections.plain_table import FactCard, PlainTable
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card


class FactsSection(QWidget):
    """The facts that were read, and the words that a person keeps."""

    def __init__(self, model: HostDetailModel) -> None:
        super().__init__()
        self._model = model
        self.change = button(
            tr("Change…"),
            self._on_change,
            icon="sliders-horizontal",
            hint=tr("Change what is kept of it; shown as a diff first"),
            command=f"sndr host change {model.name}",
        )
        kept = Card(tr("Kept by you"), self.change)
        self.kept = PlainTable(tr("Kept by you"))
        kept.body.addWidget(self.kept)
        self.parts = {part.id: FactCard(part.title) for part in fact_parts(None, 0.0)}
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(14)
        for card in (kept, *self.parts.values()):
            lines.addWidget(card)

    def refresh(self) -> None:
        """Show what is known now."""
        remote = self._model.remote
        rows = tuple(
            (caption, (getattr(remote, name) or formats.UNMEASURED).replace("\n", "  ·  "))
            for name, (caption, _hint) in FIELDS.items()
        )
        self.kept.show_rows((), rows if remote is not None else ())
        self.change.setEnabled(remote is not None and self._model.hosts.connected)
        for part in fact_parts(self._model.facts, time.time()):
            self.parts[part.id].show_part(part)

    def _on_change(self) -> None:
        if (remote := self._model.remote) is not None:
            ChangeHostDialog(self.window(), self._model, remote).open()
