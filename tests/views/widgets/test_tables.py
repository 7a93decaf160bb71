"""A table's columns: as wide as what they hold, up to a limit, and their headings above their texts."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QHelpEvent, QImage
from PySide6.QtWidgets import QApplication, QToolTip

from sndr_gui.kit.rows import Column, RowsModel
from sndr_gui.views.widgets.tables import Table
from tests.views.conftest import Stage

WIDE, NARROW = "a client with quite a long name", "a"


@pytest.fixture
def table(stage: Stage) -> Iterator[Table]:
    """A table of two columns, the first of which fits what it holds."""
    columns: list[Column[str]] = [Column("One", str), Column("Two", lambda _row: "x")]
    rows: RowsModel[str] = RowsModel(columns, str, stage.window)
    made = Table(rows, "Test", 1, {0: 60})  # type: ignore[arg-type]
    made.resize(600, 200)
    made.show()
    yield made
    made.deleteLater()


def fill(table: Table, *rows: str) -> None:
    model = table.model()
    assert isinstance(model, RowsModel)
    model.set_rows(rows)


async def test_a_column_has_the_room_that_its_texts_need(stage: Stage, table: Table) -> None:
    table.fit({0: 260})
    fill(table, WIDE)
    await stage.until(lambda: table.columnWidth(0) >= table.sizeHintForColumn(0) > 100)
    fill(table, NARROW)
    await stage.until(lambda: table.columnWidth(0) < 100)
    fill(table, WIDE * 9)
    await stage.until(lambda: table.columnWidth(1) == 100 and table.columnWidth(0) > 400)


async def test_a_wide_table_shares_its_room_out(stage: Stage, table: Table) -> None:
    table.fit({0: 260})
    fill(table, NARROW)
    table.resize(2000, 200)
    await stage.until(lambda: table.columnWidth(0) > 900)
    assert abs(table.columnWidth(0) - table.columnWidth(1)) < 120
    table.resize(600, 200)
    await stage.until(lambda: table.columnWidth(0) < 100)


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
async def test_a_column_that_holds_nothing_gives_way_to_words(stage: Stage) -> None:
    held = ["—"]
    columns: list[Column[str]] = [Column("One", str), Column("Two", lambda _row: held[0])]
    rows: RowsModel[str] = RowsModel(columns, str, stage.window)
    table = Table(rows, "Test", 0, {1: 90})  # type: ignore[arg-type]
    table.leave_out(1)
    table.resize(300, 200)
    table.show()
    fill(table, NARROW)
    await stage.until(lambda: not table._fitting.isActive())
    assert not table.isColumnHidden(1), "there is room for it"
    fill(table, WIDE * 3)
    await stage.until(lambda: table.isColumnHidden(1))
    tip = QHelpEvent(QEvent.Type.ToolTip, QPoint(20, 20), table.viewport().mapToGlobal(QPoint(20, 20)))
    QApplication.sendEvent(table.viewport(), tip)
    assert QToolTip.text() == WIDE * 3, "what is cut can be read"
    QToolTip.hideText()
    held[0] = "5 tok/s"
    fill(table, WIDE * 4)
    await stage.until(lambda: not table.isColumnHidden(1))
    table.deleteLater()


async def test_a_column_of_a_given_width_grows_where_there_is_room(stage: Stage, table: Table) -> None:
    fill(table, NARROW)
    await stage.until(lambda: table.columnWidth(0) == 60)
    fill(table, WIDE)
    await stage.until(lambda: table.columnWidth(0) >= table.sizeHintForColumn(0) > 100)
    fill(table, WIDE * 9)
    await stage.until(lambda: table.columnWidth(1) == max(100, table._wanted(1)))
    fill(table, NARROW)
    await stage.until(lambda: table.columnWidth(0) == 60)


async def test_room_is_taken_first_from_columns_that_do_not_need_it(stage: Stage) -> None:
    columns: list[Column[str]] = [
        Column("One", lambda _row: "18:28:30"),
        Column("Two", lambda _row: "x"),
        Column("Three", str),
    ]
    rows: RowsModel[str] = RowsModel(columns, str, stage.window)
    table = Table(rows, "Test", 2, {0: 84, 1: 200})  # type: ignore[arg-type]
    table.resize(320, 200)
    table.show()
    fill(table, WIDE)
    await stage.until(lambda: table.columnWidth(1) < 200)
    assert table.columnWidth(0) >= table.sizeHintForColumn(0), "a time that is cut tells nothing"
    table.resize(460, 200)
    await stage.until(lambda: table.columnWidth(2) >= table._wanted(2))
    table.setColumnWidth(1, 250)
    table.resize(461, 200)
    await stage.until(lambda: not table._fitting.isActive() and table.width() == 461)
    assert table.columnWidth(1) == 250, "what somebody dragged stays"
    table.deleteLater()


async def test_what_somebody_dragged_stays(stage: Stage, table: Table) -> None:
    fill(table, NARROW)
    table.setColumnWidth(0, 90)
    fill(table, NARROW, NARROW)
    table.resize(700, 200)
    await stage.until(lambda: not table._fitting.isActive() and table.viewport().width() > 600)
    assert table.columnWidth(0) == 90


async def test_headings_stand_above_their_texts(stage: Stage, table: Table) -> None:
    fill(table, "One")
    await stage.until(lambda: table.model().rowCount())
    image = table.grab().toImage()
    height = table.horizontalHeader().height()
    left = table.columnViewportPosition(0) + 4
    assert abs(_first(image, left, 4, height - 6) - _first(image, left, height + 8, height + 28)) <= 1


def _first(image: QImage, left: int, top: int, bottom: int) -> int:
    """The first place from the left where something is written."""
    for x in range(left, left + 100):
        if any(
            abs(image.pixelColor(x, y).lightness() - image.pixelColor(left, y).lightness()) > 60
            for y in range(top, bottom)
        ):
            return x
    raise AssertionError("nothing is written there")


async def test_a_table_of_few_rows_has_no_empty_field_below_them(stage: Stage, table: Table) -> None:
    table.as_tall_as_rows(200)
    fill(table, NARROW, NARROW)
    header, row = table.horizontalHeader().height(), table.rowHeight(0)
    await stage.until(lambda: abs(table.height() - header - 2 * row) <= 12)
    fill(table, *"abcdefgh")
    await stage.until(lambda: table.height() == 200)
    table.model().set_filter("h")  # type: ignore[attr-defined]
    await stage.until(lambda: abs(table.height() - header - row) <= 12)
