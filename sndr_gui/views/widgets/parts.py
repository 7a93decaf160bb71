"""The pieces that every page is made of: header, card, value, button, badge, empty state."""

import re
from collections.abc import Callable

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QKeySequence, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from sndr_gui.kit import theme
from sndr_gui.kit.tooltip import plain_tooltip

_UNIT = re.compile(r"(\d) ([KMGT]?i?B|tok/s|tokens?|free|GPUs?|streams?)\b")
MARGIN = 28
GAP = 14


def restyle(widget: QWidget) -> None:
    """Apply the style sheet again after a property that it looks at changed."""
    style = widget.style()
    style.unpolish(widget)
    style.polish(widget)


def set_tone(label: QLabel, tone: str) -> None:
    """Colour a text by its meaning: muted, accent, good, warn, bad, or plain."""
    if label.property("tone") != tone:
        label.setProperty("tone", tone)
        restyle(label)


def set_text(label: QLabel, text: str) -> None:
    """Change a text, and only when it is new."""
    if label.text() != text:
        label.setText(text)


def text(content: str = "", tone: str = "", name: str = "", wrap: bool = False) -> QLabel:
    """Return a label that shows its text literally."""
    label = QLabel(content)
    # Everything shown may come from a file or a model: it must never be taken for markup.
    label.setTextFormat(Qt.TextFormat.PlainText)
    if name:
        label.setObjectName(name)
    if tone:
        label.setProperty("tone", tone)
    if wrap:
        label.setWordWrap(True)
        label.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
    return label


def unbroken(content: str) -> str:
    """A text whose lines break neither inside a number with its unit nor before a dot that separates."""
    tied = _UNIT.sub("\\1\u00a0\\2", content)
    return tied.replace("  ·  ", "\u00a0\u00a0·  ")


class ElidedLabel(QLabel):
    """A label of one line that ends with an ellipsis where it is cut, and is whole in its tooltip."""

    def __init__(self, content: str = "", tone: str = "", name: str = "") -> None:
        super().__init__(content)
        self.setTextFormat(Qt.TextFormat.PlainText)
        if name:
            self.setObjectName(name)
        if tone:
            self.setProperty("tone", tone)
        self.setMinimumWidth(10)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def paintEvent(self, event: QPaintEvent) -> None:
        content = self.text()
        shown = self.fontMetrics().elidedText(content, Qt.TextElideMode.ElideRight, self.width())
        if shown == content:
            super().paintEvent(event)
            return
        self.setToolTip(plain_tooltip(content))
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.rect(), int(self.alignment()), shown)
        painter.end()


def badge(content: str, tone: str = "") -> QLabel:
    """Return a short word on a soft ground."""
    label = text(content, tone, "badge")
    label.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
    return label


def tip(sentence: str, shortcut: str = "", command: str = "") -> str:
    """Return the text of a tooltip: what it does, its keys, and the equivalent command."""
    keys = (
        f"  ({QKeySequence(shortcut).toString(QKeySequence.SequenceFormat.NativeText)})" if shortcut else ""
    )
    return plain_tooltip(sentence + keys + (f"\n{command}" if command else ""))


class Button(QPushButton):
    """A push button that leaves some room between its icon and its text."""

    def __init__(self, label: str, has_icon: bool = False) -> None:
        super().__init__()
        self._lead = " " if has_icon else ""
        # Clicking must not move the focus away from what the person types in; Tab still comes here.
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAutoDefault(False)
        self.setText(label)

    def setText(self, text: str) -> None:
        """Show a text, when it is new."""
        if self.text() != text:
            # Qt takes the keys of a button away with its text.
            keys = self.shortcut()
            super().setText(self._lead + text)
            if not keys.isEmpty():
                self.setShortcut(keys)

    def text(self) -> str:
        """Return a label that shows its text literally."""
        return super().text().strip()


def button(
    label: str,
    clicked: Callable[[], object] | None = None,
    *,
    kind: str = "",
    icon: str = "",
    hint: str = "",
    shortcut: str = "",
    command: str = "",
) -> Button:
    """A button; `kind` is primary, danger or flat, `command` the equivalent command for the tooltip."""
    made = Button(label, bool(icon))
    made.setAccessibleName(label.replace("&", ""))
    if kind:
        made.setProperty(kind, "true")
    if icon:
        token = {"primary": "on_accent", "flat": "muted"}.get(kind, "text")
        theme.ButtonIcon(made, icon, token)
    if shortcut:
        made.setShortcut(shortcut)
    if hint or shortcut or command:
        made.setToolTip(tip(hint or label, shortcut, command))
    if clicked is not None:
        made.clicked.connect(clicked)
    return made


def icon_button(icon: str, name: str, clicked: Callable[[], object] | None = None) -> QPushButton:
    """Return a small button that is only an icon; its name is read by screen readers and is its tooltip."""
    made = Button("")
    made.setProperty("flat", "true")
    made.setProperty("square", "true")
    made.setAccessibleName(name)
    made.setToolTip(name)
    made.setIconSize(QSize(16, 16))
    theme.ButtonIcon(made, icon, "muted")
    if clicked is not None:
        made.clicked.connect(clicked)
    return made


def row(*items: QWidget | QLayout | None, spacing: int = 8) -> QHBoxLayout:
    """Return widgets beside each other; None is a stretch."""
    made = QHBoxLayout()
    made.setContentsMargins(0, 0, 0, 0)
    made.setSpacing(spacing)
    for item in items:
        if item is None:
            made.addStretch(1)
        elif isinstance(item, QWidget):
            made.addWidget(item)
        else:
            made.addLayout(item)
    return made


def column(*items: QWidget | QLayout | None, spacing: int = 8) -> QVBoxLayout:
    """Return widgets below each other; None is a stretch."""
    made = QVBoxLayout()
    made.setContentsMargins(0, 0, 0, 0)
    made.setSpacing(spacing)
    for item in items:
        if item is None:
            made.addStretch(1)
        elif isinstance(item, QWidget):
            made.addWidget(item)
        else:
            made.addLayout(item)
    return made


def clear(layout: QLayout) -> None:
    """Remove everything from a layout."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()
        elif (inner := item.layout()) is not None:
            clear(inner)


def rule() -> QFrame:
    """A quiet line."""
    line = QFrame()
    line.setObjectName("rule")
    return line


class Dot(QWidget):
    """A small round light in one of the theme's colours."""

    def __init__(self, token: str = "muted", pixels: int = 10) -> None:
        super().__init__()
        self._token = token
        self._pixels = pixels
        self.setFixedSize(pixels, pixels)
        theme.notifier.changed.connect(self.update)

    def set_token(self, token: str) -> None:
        """Show another colour."""
        if token != self._token:
            self._token = token
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color(self._token))
        painter.drawEllipse(1, 1, self._pixels - 2, self._pixels - 2)
        painter.end()


class IconLabel(QLabel):
    """An icon that follows the theme."""

    def __init__(self, name: str, token: str = "muted", pixels: int = 18) -> None:
        super().__init__()
        self._name, self._token, self._pixels = name, token, pixels
        self.setFixedSize(pixels, pixels)
        theme.notifier.changed.connect(self.paint)
        self.paint()

    def set_icon(self, name: str, token: str) -> None:
        """Show another icon."""
        if (name, token) != (self._name, self._token):
            self._name, self._token = name, token
            self.paint()

    def paint(self) -> None:
        """Draw the icon in the colours of now."""
        self.setPixmap(theme.pixmap(self._name, self._token, self._pixels))


class Card(QFrame):
    """A white field with a quiet border; `body` is its layout."""

    def __init__(self, title: str = "", *trailing: QWidget) -> None:
        super().__init__()
        self.setObjectName("card")
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(16, 14, 16, 14)
        self.body.setSpacing(10)
        self.title = text(title, name="h2")
        if title:
            self.body.addLayout(row(self.title, None, *trailing))


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


class Page(QWidget):
    """One page: a title with a muted subtitle, actions at the right, and a body below."""

    def __init__(self, title: str, scrolls: bool = False) -> None:
        super().__init__()
        self.setObjectName("page")
        self.title = text(title, name="h1")
        self.subtitle = ElidedLabel("", "muted")
        self.tools = row(spacing=GAP)
        header = QHBoxLayout()
        header.setContentsMargins(MARGIN, 22, MARGIN, 0)
        header.setSpacing(GAP)
        header.addLayout(column(self.title, self.subtitle, spacing=2), 1)
        header.addLayout(self.tools)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(12)
        outer.addLayout(header)
        self.body = QVBoxLayout()
        self.body.setSpacing(GAP)
        if scrolls:
            canvas = QWidget()
            canvas.setObjectName("canvas")
            canvas.setLayout(self.body)
            self.body.setContentsMargins(MARGIN, 2, MARGIN, 20)
            area = scrolling(canvas)
            area.verticalScrollBar().rangeChanged.connect(self._on_scroll_range)
            outer.addWidget(area, 1)
        else:
            self.body.setContentsMargins(MARGIN, 2, MARGIN, 20)
            outer.addLayout(self.body, 1)

    def _on_scroll_range(self, _low: int, high: int) -> None:
        # The scroll bar takes its room from the margin, so that the cards stay where they are.
        self.body.setContentsMargins(MARGIN, 2, MARGIN - (10 if high else 0), 20)

    def set_shown(self, shown: bool) -> None:
        """Called when the page comes to the front or leaves it."""

    def focus_filter(self) -> None:
        """Put the cursor into the page's filter, where it has one."""


class HeightForWidthLayout(QVBoxLayout):
    """The layout of a canvas whose least height does not count: it is as high as it must be at its width.

    A layout asks that of its own accord only while it shows a text that wraps; without one the scroll area
    around it would take the canvas for as high as itself, and draw what is too much over the rest.
    """

    def hasHeightForWidth(self) -> bool:
        return True


def scrolling(canvas: QWidget) -> QScrollArea:
    """Return a scroll area around a canvas, without a frame."""
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(canvas)
    return area


class Paragraph(QLabel):
    """A muted, centred text of a fixed width that is always as high as it needs."""

    def __init__(self, content: str, width: int) -> None:
        super().__init__(content)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setProperty("tone", "muted")
        self.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.setWordWrap(True)
        self.set_width(width)

    def set_width(self, width: int) -> None:
        """Take another width."""
        self.setFixedWidth(width)
        self.setText(self.text())

    def setText(self, content: str) -> None:
        """Show a text and take the height that it needs."""
        super().setText(content)
        self.ensurePolished()
        self.setFixedHeight(max(0, self.heightForWidth(self.maximumWidth())))


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
            if isinstance(extra, QWidget):
                outer.addWidget(extra, 0, Qt.AlignmentFlag.AlignHCenter)
            else:
                outer.addLayout(row(None, extra, None))
        outer.addStretch(2)
