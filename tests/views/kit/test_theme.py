"""The theme is given to the application when it is another one, and only then."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from sndr_gui.kit import theme
from sndr_gui.kit.look.choices import ThemeChoice
from sndr_gui.kit.look.colours import DARK, LIGHT
from sndr_gui.views.widgets.buttons import button


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


def test_the_chosen_one_of_high_contrast_has_a_bar_and_no_frame(dressed: QApplication) -> None:
    theme.choose(ThemeChoice.HIGH_CONTRAST)
    chosen, other = (button("Day", lambda: None, kind="flat") for _ in range(2))
    try:
        chosen.setCheckable(True)
        chosen.setChecked(True)
        for one in (chosen, other):
            one.resize(one.sizeHint())
        drawn, accent = chosen.grab().toImage(), theme.color("accent")
        middle, below = drawn.height() // 2, drawn.height() - 2
        assert drawn.pixelColor(drawn.width() // 2, below) == accent
        assert drawn.pixelColor(0, middle) != accent
        assert drawn.pixelColor(drawn.width() // 2, 0) != accent
        assert chosen.height() == other.height(), "nothing moves as it is chosen"
    finally:
        theme.choose(ThemeChoice.LIGHT)
        for one in (chosen, other):
            one.deleteLater()
