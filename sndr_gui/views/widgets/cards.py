"""Cards, and the empty state of a page."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QLayout, QVBoxLayout, QWidget

from sndr_gui.kit import theme
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import IconLabel, Paragraph, set_text, text
from sndr_gui.views.widgets.layout import row

# Comfortable, compact.
_MARGINS = ((16, 14, 16, 14), (12, 8, 12, 8))
_SPACING = (10, 6)
BORDER = 1
"""Width of the border of a card, in pixels."""


def card_margins() -> tuple[int, int, int, int]:
    """Return the room inside the border of a card: left, top, right and bottom, in pixels."""
    return _MARGINS[theme.compact()]


class Card(QFrame):
    """A white field with a quiet border; `body` is its layout."""

    def __init__(self, title: str = "", *trailing: QWidget) -> None:
        super().__init__()
        self.setObjectName("card")
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(*card_margins())
        self.body.setSpacing(_SPACING[theme.compact()])
        theme.notifier.density_changed.connect(self._on_density)
        self.title = text(title, name="h2")
        if title:
            self.body.addLayout(row(self.title, None, *trailing))

    def _on_density(self) -> None:
        now, before = theme.compact(), not theme.compact()
        margins = self.body.contentsMargins()
        # A card with a layout of its own keeps that.
        if (margins.left(), margins.top(), margins.right(), margins.bottom()) == _MARGINS[before]:
            self.body.setContentsMargins(*_MARGINS[now])
        if self.body.spacing() == _SPACING[before]:
            self.body.setSpacing(_SPACING[now])


class ValueCard(Card):
    """One number that matters: its caption, its value and a note."""

    def __init__(self, caption: str) -> None:
        super().__init__()
        self.body.setSpacing(4)
        self.caption = text(caption, "muted")
        self.value = text("—", name="value")
        self.note = text("", "muted", wrap=True)
        for label in (self.caption, self.value, self.note):
            self.body.addWidget(label)
        # Beside a card whose note takes two lines the numbers stay on one height.
        self.body.addStretch(1)

    def show_value(self, caption: str, value: str, note: str, why: str = "") -> None:
        """Show a value; told to screen readers as one sentence. `why`: its source, or why there is none."""
        set_text(self.caption, caption)
        set_text(self.value, value)
        set_text(self.note, note)
        self.setToolTip(plain_tooltip(why))
        self.setAccessibleName(f"{caption}: {value}, {note}")
        self.setAccessibleDescription(why)


_COMMAND = 320


class EmptyState(QWidget):
    """The empty state of a page: what is missing, and the one thing to do."""

    def __init__(self, icon: str, heading: str, sentence: str, *extras: QWidget | QLayout) -> None:
        super().__init__()
        self.heading = text(heading, name="big")
        self.sentence = Paragraph(sentence, 460)
        outer = QVBoxLayout(self)
        outer.setSpacing(10)
        outer.addStretch(1)
        outer.addWidget(IconLabel(icon, "muted", 32), 0, Qt.AlignmentFlag.AlignHCenter)
        outer.addWidget(self.heading, 0, Qt.AlignmentFlag.AlignHCenter)
        outer.addWidget(self.sentence, 0, Qt.AlignmentFlag.AlignHCenter)
        for extra in extras:
            if isinstance(extra, CopyField):
                # In the middle of a page nothing else gives it room for its text.
                extra.setMinimumWidth(_COMMAND)
            if isinstance(extra, QWidget):
                outer.addWidget(extra, 0, Qt.AlignmentFlag.AlignHCenter)
            else:
                outer.addLayout(row(None, extra, None))
        outer.addStretch(2)
