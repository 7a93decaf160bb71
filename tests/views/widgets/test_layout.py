"""The layout of a canvas that scrolls: what has no room is out of sight, and never squeezed."""

from itertools import pairwise

from PySide6.QtWidgets import QPushButton, QWidget
from pytestqt.qtbot import QtBot

from sndr_gui.views.widgets.layout import HeightForWidthLayout


def test_a_canvas_that_is_too_low_squeezes_nothing(qtbot: QtBot) -> None:
    outer = QWidget()
    canvas = QWidget(outer)
    lines = HeightForWidthLayout(canvas)
    parts = [QPushButton("a part of a page") for _ in range(6)]
    for part in parts:
        lines.addWidget(part)
    qtbot.addWidget(outer)
    outer.show()
    # As its scroll area has it for a turn of the loop, after its contents grew.
    canvas.resize(280, 60)
    places = [part.geometry() for part in parts]
    assert all(
        place.height() >= part.minimumSizeHint().height() for place, part in zip(places, parts, strict=True)
    )
    assert all(one.bottom() < other.top() for one, other in pairwise(places))
