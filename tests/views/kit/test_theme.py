"""The theme is given to the application when it is another one, and only then."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from sndr_gui.kit import theme
from sndr_gui.kit.look.choices import ThemeChoice
from sndr_gui.kit.look.colours import DARK, LIGHT


def test_the_theme_in_force_is_not_given_again(dressed: QApplication) -> None:
    theme.choose(ThemeChoice.LIGHT)
    told: list[str] = []
    connection = theme.notifier.changed.connect(lambda: told.append(theme.current().bg))
    try:
        theme.choose(ThemeChoice.LIGHT)
        assert not told
        theme.choose(ThemeChoice.DARK)
        theme.choose(ThemeChoice.DARK)
        assert told == [DARK.bg]
        assert dressed.palette().window().color() == theme.color("bg")
    finally:
        theme.choose(ThemeChoice.LIGHT)
        theme.notifier.changed.disconnect(connection)
    assert dressed.palette().window().color().name().upper() == LIGHT.bg.upper()


def test_a_change_that_takes_a_moment_is_seen_at_once(dressed: QApplication) -> None:
    theme.choose(ThemeChoice.LIGHT)
    cursors: list[Qt.CursorShape] = []

    def look() -> None:
        cursor = QApplication.overrideCursor()
        assert cursor is not None
        cursors.append(cursor.shape())

    connection = theme.notifier.changed.connect(look)
    try:
        theme.choose(ThemeChoice.DARK)
        assert cursors == [Qt.CursorShape.WaitCursor]
        assert QApplication.overrideCursor() is None
    finally:
        theme.notifier.changed.disconnect(connection)
        theme.choose(ThemeChoice.LIGHT)
