"""A graph in its first hour: it says where nothing was measured, and tells no value there."""

from PySide6.QtWidgets import QApplication

from sndr_gui.kit import formats
from sndr_gui.models.monitor.lines import Line
from sndr_gui.models.monitor.unmeasured import Unmeasured
from sndr_gui.views.graphs.plots import Graph

NOW, FIRST, RANGE = 1000.0, 900.0, 300.0
LINE = Line("ram.used", "bytes", "RAM", "test", at=[FIRST, 950.0, NOW], values=[4.0, 5.0, 6.0])
BEFORE = Unmeasured(NOW - RANGE, FIRST, "not measured until 11:38")


def test_it_says_where_nothing_was_measured_and_tells_no_value_there(dressed: QApplication) -> None:
    graph = Graph("RAM", 1.0, None, lambda value: f"{value:.0f} GiB")
    told: list[str] = []
    graph.on_reading(told.append)
    graph.resize(640, 200)
    graph.show_lines([LINE], RANGE, NOW, (), 10.0)
    dressed.processEvents()
    bare = graph.grab().toImage()
    graph.show_lines([LINE], RANGE, NOW, (BEFORE,), 10.0)
    dressed.processEvents()
    assert graph.grab().toImage() != bare
    # Where there is no room for the words, there are none.
    short = Unmeasured(FIRST - 5, FIRST, BEFORE.words)
    graph.show_lines([LINE], RANGE, NOW, (short,), 10.0)
    dressed.processEvents()
    assert graph.grab().toImage() == bare
    graph._read(FIRST - 100, None)
    assert told[-1].endswith(f"RAM {formats.UNMEASURED}")
    graph._read(FIRST + 2, None)
    assert told[-1].endswith("RAM 4 GiB")
