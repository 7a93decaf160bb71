"""Labels: plain text in a tone, elided, wrapped, a badge, an icon, a dot."""

import re

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from sndr_gui.kit import theme
from sndr_gui.kit.tooltip import plain_tooltip

_UNIT = re.compile(r"(\d) ([KMGT]?i?B|[КМГТ]иБ|ток/с|tok/s|tokens?|free|GPUs?|streams?)\b")

_LONG_WORD = re.compile(r"[^\s/]{97,}")
_PIECE = re.compile(r".{1,48}")

SEVERITY_ICONS = {
    "error": ("circle-alert", "bad"),
    "warning": ("triangle-alert", "warn"),
    "info": ("info", "accent"),
}


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
    if label.wordWrap():
        text = breakable(text)
    if label.text() != text:
        label.setText(text)


def text(content: str = "", tone: str = "", name: str = "", wrap: bool = False) -> QLabel:
    """Return a label that shows its text literally."""
    label = QLabel(breakable(content) if wrap else content)
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


def breakable(content: str) -> str:
    """Return a text whose longest words may be broken: one of a server would push the page aside."""
    return _LONG_WORD.sub(lambda word: "\u200b".join(_PIECE.findall(word[0])), content)


def unbroken(content: str) -> str:
    """Return a text that breaks neither between a number and its unit nor before a separating dot."""
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


def badge(content: str, tone: str = "") -> QLabel:
    """Return a short word on a soft ground."""
    label = text(content, tone, "badge")
    label.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
    return label


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
