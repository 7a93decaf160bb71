"""GPUs and engines of a host, and everything that looks wrong there."""

from __future__ import annotations

import time

from PySide6.QtWidgets import QVBoxLayout, QWidget

from sndr_gui.models.hosts.detail import HostDetailModel
from sndr_gui.models.hosts.facts import fact_part
from sndr_gui.views.hosts.sections.plain_table import FactCard
from sndr_gui.views.hosts.sections.profile import ProfileCard
from sndr_gui.views.hosts.sections.series import SeriesCard
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.problems import Findings


class OverviewSection(QWidget):
    """GPUs, engines, and the lints of the host."""

    def __init__(self, model: HostDetailModel) -> None:
        super().__init__()
        self._model = model
        self.wrong = Card("What looks wrong")
        self.findings = Findings(lambda _finding: None, lambda _fix: False)
        self.nothing = text("", "muted", wrap=True)
        self.wrong.body.addWidget(self.findings)
        self.wrong.body.addWidget(self.nothing)
        self.gpus, self.engines = FactCard("GPUs"), FactCard("Engines")
        self.profile = ProfileCard(model)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(14)
        self.series = SeriesCard(model)
        for part in (self.gpus, self.series, self.engines, self.wrong, self.profile):
            lines.addWidget(part)

    def refresh(self) -> None:
        """Show what is known now."""
        model, now = self._model, time.time()
        self.gpus.show_part(fact_part(model.facts, "gpus", now))
        self.engines.show_part(fact_part(model.facts, "engines", now))
        found = model.sheet.findings if model.sheet is not None else ()
        self.findings.show_findings(found)
        read = model.facts is not None and bool(model.facts.read_at)
        said = "Nothing that was read looks wrong." if read else "Nothing was read of it yet."
        set_text(self.nothing, said)
        self.nothing.setVisible(not found)
        self.profile.refresh()
        self.series.refresh()
