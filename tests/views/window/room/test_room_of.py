"""The width that a part has in sight, from which pages choose how many columns they have."""

from PySide6.QtWidgets import QApplication, QWidget

from sndr_gui.views.widgets.layout import column, room_of, scrolling


def test_a_part_without_a_place_has_no_room(dressed: QApplication) -> None:
    assert room_of(QWidget()) == 0


def test_what_a_scroll_area_hides_is_no_room(dressed: QApplication) -> None:
    canvas, part = QWidget(), QWidget()
    part.setMinimumWidth(520)
    canvas.setLayout(column(part))
    area = scrolling(canvas)
    area.resize(320, 400)
    area.show()
    dressed.processEvents()
    assert (part.width(), room_of(part)) == (520, area.viewport().width())
    area.resize(700, 400)
    dressed.processEvents()
    assert room_of(part) == part.width() == area.viewport().width()
    area.close()
    area.deleteLater()
