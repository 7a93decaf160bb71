"""Texts to copy: command lines, addresses and programs, each with a button that confirms it."""

from PySide6.QtCore import QPointF, QSize, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent, QShowEvent, QTextLayout, QTextOption
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import formats, theme
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.kit.typed_commands import typed_for
from sndr_gui.views.widgets.buttons import Button, EnterButton
from sndr_gui.views.widgets.labels import ElidedLabel


def copy(content: str) -> None:
    """Put a text on the clipboard."""
    QGuiApplication.clipboard().setText(content)


class CopyButton(Button):
    """Copies a text and shows for a moment that it did."""

    def __init__(self, what: str, label: str = "") -> None:
        super().__init__(label, has_icon=bool(label))
        self._name = tr("Copy {what}", what=what)
        self._content = ""
        self.setProperty("flat", "true")
        if not label:
            self.setProperty("square", "true")
        self.setAccessibleName(self._name)
        self.setToolTip(plain_tooltip(self._name))
        self._icon = theme.ButtonIcon(self, "copy", "muted")
        self._back = QTimer(self)
        self._back.setSingleShot(True)
        self._back.setInterval(1400)
        self._back.timeout.connect(self._on_back)
        self.clicked.connect(self._on_clicked)

    def set_content(self, content: str) -> None:
        """Set the text that a click copies."""
        self._content = content
        self.setEnabled(bool(content))

    def _on_clicked(self) -> None:
        copy(self._content)
        self._icon.show_icon("check", "good")
        self.setToolTip(tr("Copied"))
        self._back.start()

    def _on_back(self) -> None:
        self._icon.show_icon("copy", "muted")
        self.setToolTip(plain_tooltip(self._name))


_LONGEST = 8_000


class WrapAnywhereLabel(QLabel):
    """A text that breaks anywhere where a word is longer than the line: paths and JSON have no blanks.

    Of a very long one the beginning is shown, and how much is left out: its layout would hold the window up.
    """

    def __init__(self, content: str) -> None:
        super().__init__()
        self._parts: list[tuple[QTextLayout, float]] = []
        self._laid_out: tuple[str, int, str] | None = None
        self.setText(content)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setObjectName("mono")
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        self.setMinimumWidth(60)

    def setText(self, content: str) -> None:
        left_out = len(content) - _LONGEST
        shown = (
            content
            if left_out <= 0
            else tr(
                "{content}…\n({left_out} more characters)",
                content=content[:_LONGEST],
                left_out=formats.number(left_out),
            )
        )
        super().setText(shown)

    def hasHeightForWidth(self) -> bool:
        """Return True always: QLabel takes it out of the size policy with each text."""
        return True

    def _layout(self, content: str, width: int) -> tuple[QTextLayout, float]:
        # An option must not be torn from its hyphens; the joiner that keeps it together is drawn as nothing.
        made = QTextLayout(content.replace("-", "-\u2060"), self.font())
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        made.setTextOption(option)
        made.beginLayout()
        height = 0.0
        while (line := made.createLine()).isValid():
            line.setLineWidth(max(1, width))
            line.setPosition(QPointF(0, height))
            height += line.height()
        made.endLayout()
        return made, height

    def _layouts(self, width: int) -> list[tuple[QTextLayout, float]]:
        """Return the layout of each paragraph with its height; a box asks for it several times in a row."""
        laid_out = (self.text(), width, self.font().key())
        if self._laid_out != laid_out:
            self._laid_out = laid_out
            self._parts = [self._layout(part, width) for part in self.text().split("\n")]
        return self._parts

    def heightForWidth(self, width: int) -> int:
        return round(sum(height for _made, height in self._layouts(width)) + 0.5)

    def sizeHint(self) -> QSize:
        return QSize(200, self.heightForWidth(max(60, self.width())))

    def minimumSizeHint(self) -> QSize:
        return QSize(60, self.fontMetrics().lineSpacing())

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        # One line stands in the middle beside its button, several begin at the top.
        top = max(0.0, (self.height() - self.heightForWidth(self.width())) / 2)
        for made, height in self._layouts(self.width()):
            made.draw(painter, QPointF(0, top))
            top += height
        painter.end()


class CopyField(QFrame):
    """A command line on a soft ground, with a button that copies it."""

    def __init__(self, content: str = "", what: str = tr("command"), wraps: bool = False) -> None:
        super().__init__()
        self.setObjectName("inset")
        self._label: QLabel = WrapAnywhereLabel(content) if wraps else ElidedLabel(content, name="mono")
        self._content = content
        self._copy = CopyButton(what)
        self._copy.set_content(content)
        line = QHBoxLayout(self)
        line.setContentsMargins(12, 6, 6, 6)
        line.setSpacing(8)
        line.addWidget(self._label, 1)
        line.addWidget(self._copy, 0, Qt.AlignmentFlag.AlignTop)

    @property
    def label(self) -> QLabel:
        """The label that shows the text."""
        return self._label

    def set_content(self, content: str) -> None:
        """Set the text that a click copies."""
        if content != self._content:
            self._content = content
            self._show_content()

    def _show_content(self) -> None:
        content = typed_for(self, self._content)
        if content != self._label.text():
            self._label.setText(content)
            self._label.updateGeometry()
        self._label.setToolTip(plain_tooltip(content) if "\n" not in content else "")
        self._copy.set_content(content)

    def showEvent(self, event: QShowEvent) -> None:
        # The host that a command is for is known once the field stands on its page.
        if typed_for(self, self._content) != self._content:
            self._show_content()
        super().showEvent(event)


class SegmentedControl(QWidget):
    """A few flat buttons of which one is down."""

    def __init__(self, names: tuple[str, ...], what: str) -> None:
        super().__init__()
        self.setAccessibleName(what)
        self._buttons: list[QPushButton] = []
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(2)
        for name in names:
            made = EnterButton(name)
            made.setProperty("flat", "true")
            made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            made.setCheckable(True)
            made.setAutoExclusive(True)
            made.setAccessibleName(f"{what}: {name}")
            self._buttons.append(made)
            line.addWidget(made)
        if self._buttons:
            self._buttons[0].setChecked(True)

    @property
    def buttons(self) -> list[QPushButton]:
        """The buttons, in order."""
        return self._buttons

    @property
    def place(self) -> int:
        """The index of the button that is down."""
        return next((place for place, entry in enumerate(self._buttons) if entry.isChecked()), 0)
