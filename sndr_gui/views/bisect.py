"""The dialog that asks how a bisection judges a start."""

import shlex
from collections.abc import Callable

from PySide6.QtWidgets import QComboBox, QDialog, QLineEdit, QVBoxLayout, QWidget

from engine_host.protocol import BisectCheck
from sndr_gui.views.parts import button, row, set_text, text

_CHECKS = (
    ("The engine starts", "starts"),
    ("It answers a prompt", "answers"),
    ("It gives the same answer as without patches", "same_answer"),
    ("My own command exits with 0", ""),
)


class BisectDialog(QDialog):
    """Chooses the check; never blocks the window."""

    def __init__(self, parent: QWidget, begin: Callable[[BisectCheck], None]) -> None:
        super().__init__(parent)
        self.setWindowTitle("Find the patch that breaks a start")
        self.setMinimumWidth(460)
        self._begin = begin
        self.check = QComboBox()
        self.check.setAccessibleName("Check of a start")
        for title, _name in _CHECKS:
            self.check.addItem(title)
        self.command = QLineEdit()
        self.command.setAccessibleName("Own command")
        self.command.setPlaceholderText("./check.sh   ($SNDR_ENDPOINT, $SNDR_SOCKET and $SNDR_MODEL are set)")
        self.wrong = text("", "bad", wrap=True)
        self.start = button("Start", self._on_start, kind="primary")
        lesson = "The engine is started again and again, each time with half of the suspected patches."
        outer = QVBoxLayout(self)
        outer.setSpacing(12)
        for part in (text(lesson, "muted", wrap=True), self.check, self.command, self.wrong):
            outer.addWidget(part)
        outer.addLayout(row(None, button("Cancel", self.reject), self.start))
        self.check.currentIndexChanged.connect(self._on_changed)
        self.command.textChanged.connect(self._on_changed)
        self._on_changed()

    def _on_changed(self) -> None:
        own = not _CHECKS[self.check.currentIndex()][1]
        self.command.setVisible(own)
        words, problem = self._words() if own else (("",), "")
        set_text(self.wrong, problem)
        self.start.setEnabled(bool(words) and not problem)

    def _words(self) -> tuple[tuple[str, ...], str]:
        try:
            return tuple(shlex.split(self.command.text())), ""
        except ValueError as error:
            return (), f"This is no command: {error}."

    def _on_start(self) -> None:
        name = _CHECKS[self.check.currentIndex()][1]
        values: dict[str, object] = {"builtin": name} if name else {"command": self._words()[0]}
        self._begin(BisectCheck.model_validate(values))
        self.accept()
