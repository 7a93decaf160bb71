"""Fields that say below themselves what is wrong with what was typed, and layouts that wrap."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from sndr_gui.numbers import decimal, whole
from sndr_gui.views.parts import restyle, set_text, text


class NumberField(QWidget):
    """A line for a number; what cannot be taken stays as typed, is marked and explained."""

    def __init__(self, name: str, low: float, high: float, edited: Callable[[], object]) -> None:
        super().__init__()
        self._low, self._high = low, high
        self.edit = QLineEdit()
        self.edit.setAccessibleName(name)
        self.edit.textChanged.connect(self._on_changed)
        self.edit.textEdited.connect(edited)
        self.wrong = text("", "bad", wrap=True)
        self.wrong.hide()
        self.setFocusProxy(self.edit)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(4)
        lines.addWidget(self.edit)
        lines.addWidget(self.wrong)

    def _read(self) -> tuple[float | None, str]:
        if isinstance(self._low, int) and isinstance(self._high, int):
            return whole(self.edit.text(), self._low, self._high)
        return decimal(self.edit.text(), self._low, self._high)

    @property
    def value(self) -> float | None:
        """The number, or None where the field is empty or wrong."""
        return self._read()[0]

    @property
    def count(self) -> int | None:
        """The number of a field for whole numbers."""
        value = self.value
        return None if value is None else int(value)

    @property
    def error(self) -> str:
        """What is allowed, when something else was typed."""
        return self._read()[1]

    def _on_changed(self) -> None:
        error = self.error
        set_text(self.wrong, error)
        self.wrong.setVisible(bool(error))
        self.edit.setAccessibleDescription(error)
        marked = "true" if error else ""
        if (self.edit.property("invalid") or "") != marked:
            self.edit.setProperty("invalid", marked)
            restyle(self.edit)
