"""Texts to copy: command lines, addresses and programs, each with a button that says it did it."""

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QWidget

from sndr_gui import theme
from sndr_gui.views.parts import text


def copy(content: str) -> None:
    """Put a text on the clipboard."""
    QGuiApplication.clipboard().setText(content)


class CopyButton(QPushButton):
    """Copies a text and shows for a moment that it did."""

    def __init__(self, what: str, label: str = "") -> None:
        super().__init__(label)
        self._name = f"Copy {what}"
        self._content = ""
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setProperty("flat", "true")
        if not label:
            self.setProperty("square", "true")
        self.setAccessibleName(self._name)
        self.setToolTip(self._name)
        self._icon = theme.ButtonIcon(self, "copy", "muted")
        self._back = QTimer(self)
        self._back.setSingleShot(True)
        self._back.setInterval(1400)
        self._back.timeout.connect(self._on_back)
        self.clicked.connect(self._on_clicked)

    def set_content(self, content: str) -> None:
        """What a click copies."""
        self._content = content
        self.setEnabled(bool(content))

    def _on_clicked(self) -> None:
        copy(self._content)
        self._icon.show_icon("check", "good")
        self.setToolTip("Copied")
        self._back.start()

    def _on_back(self) -> None:
        self._icon.show_icon("copy", "muted")
        self.setToolTip(self._name)


class CommandLine(QFrame):
    """A command line on a soft ground, with a button that copies it."""

    def __init__(self, content: str = "", what: str = "command", wraps: bool = False) -> None:
        super().__init__()
        self.setObjectName("inset")
        self._label = text(content, name="mono", wrap=wraps)
        self._label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._label.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        if not wraps:
            self._label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
            self._label.setMinimumWidth(60)
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
        """Show and copy another text."""
        if content != self._label.text():
            self._label.setText(content)
            self._label.setToolTip(content if "\n" not in content else "")
            self._copy.set_content(content)


class Switcher(QWidget):
    """A few flat buttons of which one is down."""

    def __init__(self, names: tuple[str, ...], what: str) -> None:
        super().__init__()
        self.setAccessibleName(what)
        self._buttons: list[QPushButton] = []
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(2)
        for name in names:
            made = QPushButton(name)
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
        """Which one is down."""
        return next((place for place, entry in enumerate(self._buttons) if entry.isChecked()), 0)
