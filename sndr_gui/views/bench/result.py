"""The figures of a run, and two runs side by side; a struck figure is crossed out and says why."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from engine_host.client.bench_reports import comparison as compared
from engine_host.client.bench_reports.figures import (
    about,
    drift_headings,
    drift_rows,
    figure_headings,
    figure_row,
    heading,
    knee_text,
    rung_headings,
    rung_rows,
)
from engine_host.client.bench_reports.plots import Plot, comparison_plots, run_plots
from engine_host.protocol.bench.comparison import LabComparison
from engine_host.protocol.bench.lab import LabRun
from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import clear, rule

_GRAPH = 200
_ROW = 28
_AROUND = 40
# More letters than a figure with its interval has: the name of a model, which breaks.
_LONG = 24
# Drawn as a line through the figure; what stands between them never comes from a server.
_STRUCK = "\u2063struck\u2063"


class Result(QWidget):
    """The figures and conditions of the chosen run, or of two."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: object = None
        self._lines = QVBoxLayout(self)
        self._lines.setContentsMargins(0, 0, 0, 0)
        self._lines.setSpacing(8)

    def show_run(self, run: LabRun | None) -> None:
        """Show the figures of a run; the same one stays as it is."""
        if not self._is_new(run):
            return
        if run is None:
            return
        for line in about(run):
            self._lines.addWidget(text(line, "muted", wrap=True))
        self._draw(run_plots(run))
        if run.drifts:
            self._lines.addWidget(rule())
            self._lines.addWidget(text(tr("From its first half to its second")))
            self._lines.addWidget(cells(drift_headings(), drift_rows(run)))
        if run.rungs:
            self._lines.addWidget(rule())
            self._lines.addWidget(text(tr("How much of its context it takes")))
            self._lines.addWidget(cells(rung_headings(), rung_rows(run)))
        for part in run.parts:
            self._lines.addWidget(rule())
            self._lines.addWidget(text(heading(run, part), wrap=True))
            rows = [figure_row(figure, _mark) for figure in part.figures]
            self._lines.addWidget(cells(figure_headings(), rows))
        if run.knee is not None:
            self._lines.addWidget(text(knee_text(run), wrap=True))

    def show_comparison(self, found: LabComparison) -> None:
        """Show two runs side by side; the same two stay as they are."""
        if not self._is_new(found):
            return
        for line in compared.sides(found):
            self._lines.addWidget(text(line, "muted", wrap=True))
        for line in compared.doubts(found):
            self._lines.addWidget(text(line, "warn", wrap=True))
        self._draw(comparison_plots(found))
        self._lines.addWidget(rule())
        if found.differing:
            self._lines.addWidget(text(compared.differing()))
            self._lines.addWidget(cells(("", "A", "B"), compared.differing_rows(found)))
        else:
            self._lines.addWidget(text(compared.nothing_differs(), wrap=True))
        for part, rows in compared.figure_rows(found, _mark).items():
            self._lines.addWidget(rule())
            self._lines.addWidget(text(part, wrap=True))
            self._lines.addWidget(cells(compared.headings(), rows, wide=-2))
        self._lines.addWidget(text(compared.of_chance(found), "muted", wrap=True))

    def _draw(self, plots: Sequence[Plot]) -> None:
        """Draw what there is to draw; the library for it is loaded only then."""
        if not plots:
            return
        from sndr_gui.views.graphs.plots import Measured

        for plot in plots:
            self._lines.addWidget(rule())
            self._lines.addWidget(text(f"{plot.title}, {plot.y_title}", wrap=True))
            graph = Measured(plot)
            graph.setFixedHeight(_ROW * len(plot.ticks) + _AROUND if plot.across else _GRAPH)
            self._lines.addWidget(graph)
            if plot.note or plot.x_title:
                said = ". ".join(one for one in (plot.x_title, plot.note) if one)
                self._lines.addWidget(text(said, "muted", wrap=True))

    def _is_new(self, shown: object) -> bool:
        if shown == self._shown:
            return False
        self._shown = shown
        clear(self._lines)
        return True


def _mark(figure: str) -> str:
    return _STRUCK + figure


def cells(headings: Sequence[str], rows: Sequence[Sequence[str]], wide: int = -1) -> QWidget:
    """Return a small table whose rows are read out whole; its `wide` column takes the room that is left."""
    made = QWidget()
    grid = QGridLayout(made)
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setHorizontalSpacing(14)
    grid.setVerticalSpacing(5)
    wide %= len(headings)
    grid.setColumnStretch(wide, 1)
    for place, title in enumerate(headings):
        grid.addWidget(text(title, "muted", wrap=True), 0, place, Qt.AlignmentFlag.AlignBottom)
    for line, cells in enumerate(rows, start=1):
        said = ", ".join(
            f"{title} {_plain(cell)}".strip() for title, cell in zip(headings, cells, strict=True) if cell
        )
        for place, cell in enumerate(cells):
            label = _cell(cell, wraps=place in (0, wide) or len(cell) > _LONG)
            if place == 0:
                label.setAccessibleName(said)
            grid.addWidget(label, line, place, Qt.AlignmentFlag.AlignTop)
    return made


def _cell(content: str, *, wraps: bool) -> QLabel:
    label = text(formats.strip_backticks(content.removeprefix(_STRUCK)), wrap=wraps)
    if content.startswith(_STRUCK):
        font = label.font()
        font.setStrikeOut(True)
        label.setFont(font)
        label.setAccessibleName(_plain(content))
    return label


def _plain(content: str) -> str:
    return (
        tr("struck: {removeprefix}", removeprefix=content.removeprefix(_STRUCK))
        if content.startswith(_STRUCK)
        else content
    )
