"""The comparison finds what a person would see, and nothing that rasterisers do to the same letters."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtGui import QFont, QImage
from PySide6.QtWidgets import QApplication, QFrame, QLabel, QPushButton, QVBoxLayout, QWidget

from sndr_gui.kit import theme
from tests.views.pictures.comparison import compare, keep, marked


class Sheet(QWidget):
    """A card with a title, a text, a state and two buttons."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("canvas")
        card = QFrame()
        card.setObjectName("card")
        self.lines = QVBoxLayout(card)
        self.title = QLabel("Endpoint")
        self.title.setObjectName("h1")
        self.text = QLabel("Editors and agents reach every engine under one address.")
        self.state = QLabel("ready")
        self.state.setProperty("tone", "good")
        self.start = QPushButton("Keep running")
        self.start.setProperty("primary", True)
        self.stop = QPushButton("Stop and close")
        for part in (self.title, self.text, self.state, self.start, self.stop):
            self.lines.addWidget(part)
        outer = QVBoxLayout(self)
        outer.addWidget(card)
        self.setFixedSize(480, 260)

    def picture(self) -> QImage:
        """Return the card as it is now."""
        return self.grab().toImage()


@pytest.fixture
def sheet(dressed: QApplication) -> Sheet:
    made = Sheet()
    made.ensurePolished()
    made.picture()
    return made


def moved(sheet: Sheet) -> None:
    sheet.lines.activate()
    sheet.stop.move(sheet.stop.x() + 3, sheet.stop.y())


def narrower(sheet: Sheet) -> None:
    sheet.stop.setMaximumWidth(sheet.stop.width() - 4)


def pale(sheet: Sheet) -> None:
    sheet.setStyleSheet("QFrame#card { background: #f4f4f4; }")


def wrong_tone(sheet: Sheet) -> None:
    sheet.state.setProperty("tone", "bad")
    sheet.state.style().polish(sheet.state)


def cut_off(sheet: Sheet) -> None:
    sheet.text.setFixedWidth(sheet.text.sizeHint().width() - 12)


def reworded(sheet: Sheet) -> None:
    sheet.start.setText("Keep runming")


def gone(sheet: Sheet) -> None:
    sheet.state.setText("")


def frameless(sheet: Sheet) -> None:
    sheet.setStyleSheet("QPushButton { border: 0; }")


@pytest.mark.parametrize(
    "defect",
    [moved, narrower, pale, wrong_tone, cut_off, reworded, gone, frameless],
    ids=lambda one: one.__name__,
)
def test_a_defect_is_found(sheet: Sheet, tmp_path: Path, defect: Callable[[Sheet], None]) -> None:
    kept = tmp_path / "reference.png"
    keep(sheet.picture(), kept)
    reference = QImage(str(kept))
    assert compare(sheet.picture(), reference).same
    defect(sheet)
    now = sheet.picture()
    difference = compare(now, reference)
    assert not difference.same
    assert "differ between" in difference.said
    seen = marked(now, reference, difference)
    assert (seen.width(), seen.height()) == (480 + 16 + 480, 260)


# Not `PreferFullHinting`: it moves letters to whole pixels, and the program asks for none at all.
@pytest.mark.parametrize(
    "hinting", [QFont.HintingPreference.PreferVerticalHinting, QFont.HintingPreference.PreferDefaultHinting]
)
def test_letters_that_are_drawn_otherwise_are_the_same(
    sheet: Sheet, tmp_path: Path, hinting: QFont.HintingPreference
) -> None:
    kept = tmp_path / "reference.png"
    keep(sheet.picture(), kept)
    for part in sheet.findChildren(QWidget):
        font = part.font()
        font.setHintingPreference(hinting)
        part.setFont(font)
    found = compare(sheet.picture(), QImage(str(kept)))
    assert found.same, found.said


def test_letters_of_another_gamma_are_the_same(sheet: Sheet, tmp_path: Path) -> None:
    kept = tmp_path / "reference.png"
    keep(sheet.picture(), kept)
    found = compare(darker(sheet.picture()), QImage(str(kept)))
    assert found.same, found.said


def darker(picture: QImage) -> QImage:
    """Return the picture with every colour that is no plain one of the theme a quarter darker."""
    made = picture.copy()
    plain = {
        theme.color(name).rgb() for name in ("bg", "surface", "accent", "raised", "line", "text", "good")
    }
    for row in range(made.height()):
        for column in range(made.width()):
            colour = made.pixelColor(column, row)
            if colour.rgb() not in plain:
                made.setPixelColor(column, row, colour.darker(125))
    return made


def test_another_size_is_a_difference(sheet: Sheet) -> None:
    picture = sheet.picture()
    found = compare(picture, picture.copy(0, 0, 400, 260))
    assert not found.same
    assert found.said == "it is 480x260 and not 400x260 pixels"
