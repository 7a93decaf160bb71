"""The dialog of the first run: four cards to read or to leave, each with one thing to do at most."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from engine_host.protocol.errors import Problem
from engine_host.protocol.language import tr
from sndr_gui.models.first_run.page import FirstRunModel
from sndr_gui.views.engine.stages import JobView
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.dialog import Dialog
from sndr_gui.views.widgets.labels import set_text, set_tone, text
from sndr_gui.views.widgets.layout import GAP, HeightForWidthLayout, clear, row, scrolling

COMMAND = "sndr setup"
_LATER = tr("You can do this at any time. It is in the palette and in Settings whenever you want it again.")


class FirstRunDialog(Dialog):
    """Shows this machine, its models, one start and one measurement; the window works beside it."""

    def __init__(self, parent: QWidget, model: FirstRunModel, go: Callable[[str], object]) -> None:
        """`go` opens a page of the window."""
        super().__init__(parent, tr("Welcome"))
        self.resize(720, 780)
        self.model, self._go = model, go
        self._machine_card()
        self._models_card()
        self._start_card()
        self._measure_card()
        canvas = QWidget()
        canvas.setObjectName("canvas")
        body = HeightForWidthLayout(canvas)
        body.setContentsMargins(20, 4, 20, 12)
        body.setSpacing(GAP)
        for card in (self.machine, self.models, self.first, self.measure):
            body.addWidget(card)
        body.addStretch(1)
        self.skip = button(tr("Skip"), self.reject, hint=tr("Close this; it does not come again by itself"))
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 18, 0, 18)
        lines.setSpacing(12)
        head, foot = QVBoxLayout(), QVBoxLayout()
        for part in (head, foot):
            part.setContentsMargins(20, 0, 20, 0)
        head.addWidget(text(tr("Welcome"), name="h1"))
        head.addWidget(text(_LATER, "muted", wrap=True))
        command = CopyField(COMMAND, tr("equivalent command"))
        command.setFixedWidth(220)
        foot.addLayout(row(command, None, self.skip))
        lines.addLayout(head)
        lines.addWidget(scrolling(canvas), 1)
        lines.addLayout(foot)
        model.changed.connect(self.refresh)
        self.finished.connect(self._on_closed)
        model.set_shown(True)
        self.refresh()
        self.skip.setFocus()

    def _on_closed(self) -> None:
        self.model.changed.disconnect(self.refresh)
        self.model.set_shown(False)

    def _machine_card(self) -> None:
        self.machine = Card(tr("This machine"))
        self._parts = QGridLayout()
        self.can_do = text("", wrap=True)
        self.machine.body.addLayout(self._grid(self._parts))
        self.machine.body.addWidget(self.can_do)
        self._shown_parts: tuple[tuple[str, str], ...] | None = None

    def _models_card(self) -> None:
        self.models = Card(tr("Models that are here"))
        self._places = QGridLayout()
        self.models_sentence = text("", "muted", wrap=True)
        self.library = button(tr("Library"), self._leave_to("library"), kind="flat", hint=tr("Open Library"))
        self.models.body.addLayout(self._grid(self._places))
        # Beside their sentences the buttons leave room for the last card to be seen whole.
        self.models.body.addLayout(row(self.models_sentence, self.library))
        self._shown_places: tuple[tuple[str, str], ...] | None = None

    def _start_card(self) -> None:
        model = self.model
        self.first = Card(tr("Start something"))
        self.about = text("", wrap=True)
        self.start = button(tr("Start it"), model.start, kind="primary", icon="play")
        self.cancel = button(tr("Cancel"), model.cancel_start, hint=tr("Cancel the start"))
        self.cancel.setAccessibleName(tr("Cancel the start"))
        self.chat = button(
            tr("Open Chat"), self._leave_to("chat"), icon="message-square", hint=tr("Talk to it")
        )
        self.launch = button(
            tr("Something else…"),
            self._leave_to("launch"),
            kind="flat",
            hint=tr("Choose on Launch: models and presets"),
        )
        self.first.body.addWidget(self.about)
        self.first.body.addLayout(row(self.start, self.cancel, self.chat, self.launch, None))

    def _measure_card(self) -> None:
        bench = self.model.bench
        self.measure = Card(tr("Measure it"))
        self.found = text("", "muted", wrap=True)
        self._figures = QGridLayout()
        self._shown_figures: tuple[tuple[str, str, str], ...] | None = None
        self.job = JobView(tr("measurement"), dismiss=True)
        self.job.cancel.clicked.connect(bench.cancel)
        self.go_measure = button(tr("Measure"), bench.start, icon="timer")
        self.measure.body.addLayout(self._grid(self._figures))
        self.measure.body.addLayout(row(self.found, self.go_measure))
        self.measure.body.addWidget(self.job)

    @staticmethod
    def _grid(grid: QGridLayout) -> QGridLayout:
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(14)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(1, 1)
        return grid

    def _leave_to(self, page: str) -> Callable[[], None]:
        def leave() -> None:
            self.accept()
            self._go(page)

        return leave

    def refresh(self) -> None:
        """Show what is known now."""
        model = self.model
        parts = model.machine()
        if model.waiting:
            parts = (("", model.waiting),)
        self._shown_parts = _fill(self._parts, parts, self._shown_parts)
        self.can_do.setVisible(not model.waiting)
        set_text(self.can_do, model.can_do)
        self._shown_places = _fill(self._places, model.models(), self._shown_places)
        set_text(self.models_sentence, model.models_sentence)
        self._refresh_start()
        self._refresh_measurement()
        leave = tr("Close") if model.runs else tr("Skip")
        self.skip.setText(leave)
        self.skip.setAccessibleName(leave)

    def _refresh_start(self) -> None:
        model = self.model
        set_text(self.about, model.start_sentence())
        failed = isinstance(model.actions.problem, Problem) and model.engine is None
        set_tone(self.about, "bad" if failed else "")
        self.start.setVisible(not model.runs)
        self.start.setText(tr("Starting…") if model.starting else tr("Start it"))
        if not self._can_start:
            self.start.setEnabled(False)
        elif not self.start.isEnabled():
            # Once what came with it is laid out: that moves it, and somebody may have the pointer on it.
            QTimer.singleShot(0, self, self._allow_start)
        self.start.setToolTip(tip(tr("Start the recommended model"), command=model.command))
        self.cancel.setVisible(model.starting and model.engine is not None)
        self.chat.setVisible(model.runs)

    @property
    def _can_start(self) -> bool:
        model = self.model
        return model.connected and model.recommended is not None and not model.starting

    def _allow_start(self) -> None:
        self.start.setEnabled(self._can_start)

    def _refresh_measurement(self) -> None:
        model, bench = self.model, self.model.bench
        set_text(self.found, model.measure_sentence())
        figures = model.figures()
        if figures != self._shown_figures:
            self._shown_figures = figures
            clear(self._figures)
            for line, (name, median, why) in enumerate(figures):
                for place, said in enumerate(
                    (text(name, "muted"), text(median), text(why, "muted", wrap=True))
                ):
                    self._figures.addWidget(said, line, place)
        job = bench.job
        # One that is done stands above, as its figures.
        shown = job is not None and not (job.ended and bench.measured is not None)
        self.job.setVisible(shown)
        if job is not None and shown:
            self.job.show_job(job, bench.cancelling)
        self.go_measure.setText(tr("Measure again") if figures else tr("Measure"))
        self.go_measure.setEnabled(bench.can_start)
        self.go_measure.setToolTip(
            tip(tr("Benchmark the engine that runs, in the background"), command=bench.request.command)
        )


def _fill(
    grid: QGridLayout, rows: tuple[tuple[str, str], ...], before: tuple[tuple[str, str], ...] | None
) -> tuple[tuple[str, str], ...]:
    """Fill a grid of names and sentences, where they are new."""
    if rows != before:
        clear(grid)
        for line, (name, said) in enumerate(rows):
            label = text(name, "muted")
            label.setAccessibleName(f"{name}: {said}")
            grid.addWidget(label, line, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(text(said, wrap=True), line, 1)
    return rows
