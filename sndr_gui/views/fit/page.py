"""Fit: any model on any hardware, what it needs part by part, how far it goes, and what to change."""

from __future__ import annotations

import asyncio

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QGridLayout, QHBoxLayout, QSizePolicy, QWidget

from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import Verdict
from sndr_gui.kit import formats
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.fit.device_memory import device_memories
from sndr_gui.models.fit.figures import company
from sndr_gui.models.fit.page import FitModel
from sndr_gui.views.fit.curve import CurveCard
from sndr_gui.views.fit.inputs import FitInputs
from sndr_gui.views.fit.notes import AdviceCard, ChangesCard, SpeedCard
from sndr_gui.views.fit.tables import GridCard, KnownCard, KvCard, ReportedCard
from sndr_gui.views.graphs.card import load_graphs
from sndr_gui.views.graphs.memory_bar import MemoryView, PartTable
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card, EmptyState, ValueCard
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import set_text, set_tone, text
from sndr_gui.views.widgets.layout import GAP, HeightForWidthLayout, beside_bar, column, rule, scrolling
from sndr_gui.views.widgets.page import Page
from sndr_gui.views.widgets.problems import ProblemBox
from sndr_gui.views.widgets.tables import Table

_NARROW = 900
_WIDE = 1300
_BESIDE = 1600


class FitView(Page):
    """The page of the memory calculator."""

    def __init__(self, model: FitModel) -> None:
        super().__init__(tr("Fit"))
        self.model = model
        self._columns = 0
        self._lines: list[QBoxLayout] = []
        self._loading: asyncio.Future[None] | None = None
        self.inputs = FitInputs(model)
        left = scrolling(self.inputs)
        left.setFixedWidth(320)
        self._left = left
        canvas = QWidget()
        canvas.setObjectName("canvas")
        self._right = HeightForWidthLayout(canvas)
        self._right.setSpacing(GAP)
        self._make_answer()
        self.answer = scrolling(canvas)
        beside_bar(self.answer, self._right)
        self.answer.setMinimumWidth(300)
        split = QHBoxLayout()
        split.setSpacing(GAP)
        split.addWidget(left)
        split.addWidget(self.answer, 1)
        self.body.addLayout(split, 1)
        self.equivalent_command = CopyField("", tr("equivalent command"))
        self.body.addWidget(self.equivalent_command)
        model.changed.connect(self._on_changed)
        model.answered.connect(self._on_answered)
        model.starts_changed.connect(self._on_starts)
        self._on_changed()
        self._on_answered()
        self._on_starts()

    def _make_answer(self) -> None:
        model = self.model
        self.figures = [ValueCard("") for _ in range(4)]
        self._figures = QGridLayout()
        self._figures.setSpacing(10)
        self.why = text("", wrap=True)
        self.company = text("", "muted", wrap=True)
        self.problem = ProblemBox("warning")
        self.read = button(
            tr("Read config.json from Hugging Face"), model.read_from_hub, kind="primary", icon="download"
        )
        self.unread = EmptyState("download", tr("Config not read yet"), "", self.read)
        self.unread.setMinimumHeight(220)
        self.memory = MemoryView()
        self.parts = PartTable()
        self.memory_card = Card(tr("Memory per device"))
        self.reserve = text("", "muted", wrap=True)
        for part in (self.memory, self.reserve, rule(), self.parts):
            self.memory_card.body.addWidget(part)
        self.changes = ChangesCard(model.apply_change, model.can_change)
        self.kinds, self.grid, self.curve = KvCard(), GridCard(), CurveCard()
        self.advice, self.speed, self.reported = AdviceCard(), SpeedCard(), ReportedCard()
        self.known = KnownCard()
        self.verified = Card(tr("Predicted and measured on this machine"))
        widths = {1: 92, 2: 120, 3: 140, 4: 96, 5: 96, 6: 78}
        self.starts = Table(self.model.starts, tr("Compared starts"), 0, widths)  # type: ignore[arg-type]
        self.starts.verticalHeader().setDefaultSectionSize(30)
        self.no_starts = text(
            tr(
                "No start was compared yet. When an engine is ready, the memory that it "
                "reports is compared with the prediction, and corrects later estimates."
            ),
            "muted",
            wrap=True,
        )
        self.verified.body.addWidget(self.no_starts)
        self.verified.body.addWidget(self.starts)
        self.verified.body.addWidget(CopyField("sndr fit --starts", tr("equivalent command")))
        self._right.addLayout(self._figures)
        for shown in (
            self.why,
            self.company,
            self.problem,
            self.unread,
            self.memory_card,
            self.changes,
        ):
            self._right.addWidget(shown)
        for two in ((self.kinds, self.curve), (self.advice,), (self.grid, self.speed), (self.reported,)):
            self._add_beside(*two)
        self._add_beside(self.known, self.verified)
        self._right.addStretch(1)

    def _add_beside(self, *cards: Card) -> None:
        """Add cards that stand beside each other where the window is wide enough, and else below."""
        line = column(spacing=GAP)
        for card in cards:
            # In a line with a higher one its rows stay together.
            card.body.addStretch(1)
            line.addWidget(card, 1)
        self._lines.append(line)
        self._right.addLayout(line)

    def set_shown(self, shown: bool) -> None:
        self.model.set_shown(shown)
        if shown and self.curve.curve is None and self._loading is None:
            self._loading = self.model.session.tasks.start(self._load_curve(), "load graphs")

    async def _load_curve(self) -> None:
        await load_graphs()
        self.curve.make_curve()

    def focus_filter(self) -> None:
        self.inputs.boxes["source"].setFocus()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.width() < _NARROW
        self._place_inputs(narrow)
        columns = 4 if self.width() >= 1000 or (self.width() < _NARROW and self.width() > 620) else 2
        if self._columns != columns:
            self._columns = columns
            for number, card in enumerate(self.figures):
                self._figures.addWidget(card, number // columns, number % columns)
        beside = self.width() >= _BESIDE
        for line in self._lines:
            line.setDirection(
                QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom
            )
        self.starts.setColumnHidden(1, narrow)
        self.starts.setColumnHidden(2, self.width() < _WIDE)

    def _place_inputs(self, narrow: bool) -> None:
        """Put the form beside the answer, or in a small window below its first figures."""
        if narrow == self._left.isHidden():
            return
        if narrow:
            self._left.takeWidget()
            # Among the cards it is as high as it wants to be.
            self.inputs.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
            self._right.insertWidget(1, self.inputs)
            self.inputs.show()
        else:
            self._right.removeWidget(self.inputs)
            self.inputs.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Ignored)
            self._left.setWidget(self.inputs)
        self._left.setVisible(not narrow)

    # What is shown.

    def _on_changed(self) -> None:
        self.inputs.refresh()
        self.equivalent_command.set_content(self.model.command)
        self._subtitle()
        self._refresh_unread()

    def _subtitle(self) -> None:
        set_text(self.subtitle, self.model.subtitle)

    def _on_answered(self) -> None:
        model, report = self.model, self.model.report
        waiting = model.query.waiting
        self.equivalent_command.set_content(model.command)
        self._subtitle()
        self.inputs.refresh_planned()
        for card, figure in zip(self.figures, model.figures(), strict=True):
            card.show_value(figure.caption, figure.value, figure.note)
            set_tone(card.value, "muted" if waiting else figure.tone)
        devices = device_memories(report)
        fullest = max(devices, key=lambda device: device.needed - device.usable, default=None)
        why = report.why if report else ""
        if report is not None and report.verdict is Verdict.DOES_NOT_FIT and fullest and not fullest.fits:
            # Rounded as the bar below is.
            why = tr("{size} are missing.", size=formats.size(fullest.needed - fullest.usable))
        set_text(self.why, why)
        self.why.setVisible(bool(why))
        beside = company(report)
        set_text(self.company, beside)
        self.company.setVisible(bool(beside))
        problem, sentence = model.problem, model.query.sentence
        said = problem is not None or (bool(sentence) and not model.unread)
        self.problem.setVisible(said)
        if problem is not None:
            self.problem.show_problem(problem)
        elif said:
            self.problem.show_sentence(sentence)
        self._refresh_unread()
        self.memory_card.setVisible(not model.unread and (report is None or bool(report.devices)))
        reserve = report.reserve if report else ""
        set_text(self.reserve, reserve)
        self.reserve.setVisible(bool(reserve))
        self.memory.show_report(report, waiting, model.missing or tr("not computed"))
        self.parts.show_device(fullest)
        self.changes.show_changes(report.changes if report else ())
        self.kinds.show_report(report)
        self.curve.show_report(report)
        self.grid.show_report(report)
        self.advice.show_advice(report.advice if report else ())
        # What was learnt and what is not known have a card of their own here.
        plain = report.model_copy(update={"corrections": (), "unknown": ()}) if report else None
        self.speed.show_report(plain, model.measured_speed)
        self.reported.show_speeds(model.reported_speeds() if report else ())
        self.known.show_report(report)

    def _refresh_unread(self) -> None:
        model = self.model
        self.unread.setVisible(model.unread and model.hub_problem is None)
        name = model.form.repository.strip()
        self.unread.sentence.setText(
            tr(
                "Reading sends two small requests about {name} to {hub_name}: for its "
                "config.json and its list of files. No weights are downloaded.",
                name=name,
                hub_name=model.hub_name,
            )
        )
        self.read.setText(
            tr("Reading…")
            if model.reading
            else tr("Read config.json from {hub_name}", hub_name=model.hub_name)
        )
        self.read.setEnabled(not model.reading)
        self.read.setToolTip(plain_tooltip(f"sndr fit {name} --online"))

    def _on_starts(self) -> None:
        rows = self.model.starts.total
        self.no_starts.setVisible(not rows)
        self.starts.setVisible(bool(rows))
        self.starts.setFixedHeight(min(320, 46 + 30 * max(1, rows)))
