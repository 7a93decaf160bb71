"""GPUs with their power limits and engines of a host, and everything that looks wrong there."""

from __future__ import annotations

import time

from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.models.hosts.detail import HostDetailModel
from sndr_gui.models.hosts.facts import fact_part
from sndr_gui.views.hosts.sections.plain_table import FactCard
from sndr_gui.views.hosts.sections.power import PowerCard
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
        self.wrong = Card(tr("What looks wrong"))
        self.findings = Findings(lambda _finding: None, lambda _fix: False)
        self.nothing = text("", "muted", wrap=True)
        self.wrong.body.addWidget(self.findings)
        self.wrong.body.addWidget(self.nothing)
        self.gpus, self.engines = FactCard(tr("GPUs")), FactCard(tr("Engines"))
        self.profile = ProfileCard(model)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(14)
        self.series = SeriesCard(model)
        self.power = PowerCard(model)
        self._power_jobs: frozenset[str] = frozenset()
        model.hosts.session.state.jobs_changed.connect(self._on_jobs)
        for part in (self.gpus, self.power, self.series, self.engines, self.wrong, self.profile):
            lines.addWidget(part)
        if model.is_connected and model.facts is not None and model.facts.gpus:
            model.read_power()

    def refresh(self) -> None:
        """Show what is known now."""
        model, now = self._model, time.time()
        self.gpus.show_part(fact_part(model.facts, "gpus", now))
        self.engines.show_part(fact_part(model.facts, "engines", now))
        found = model.sheet.findings if model.sheet is not None else ()
        self.findings.show_findings(found)
        read = model.facts is not None and bool(model.facts.read_at)
        said = tr("Nothing that was read looks wrong.") if read else tr("Nothing was read of it yet.")
        set_text(self.nothing, said)
        self.nothing.setVisible(not found)
        self.profile.refresh()
        self.series.refresh()
        self.power.refresh()

    def _on_jobs(self) -> None:
        touched = f"power of {self._model.name}"
        jobs = self._model.hosts.session.state.jobs.values()
        now = frozenset(job.id for job in jobs if job.touches == touched and not job.ended)
        if self._power_jobs - now and self._model.is_connected:
            self._model.read_power()
        self._power_jobs = now
