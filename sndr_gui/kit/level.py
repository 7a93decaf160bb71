"""How much the pages offer: what few people need is left out at the simple level."""

from enum import StrEnum

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget


class Level(StrEnum):
    """The same pages, with fewer rows or with all."""

    SIMPLE = "simple"
    EXPERT = "expert"


class _Chosen(QObject):
    """The level that is in force.

    Signals:
        changed: another one is
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.level = Level.EXPERT


chosen = _Chosen()


def choose(level: Level) -> None:
    """Put a level in force."""
    if level is not chosen.level:
        chosen.level = level
        chosen.changed.emit()


def is_simple() -> bool:
    """Tell whether rows that few people need are left out."""
    return chosen.level is Level.SIMPLE


class ForExperts(QObject):
    """Hides a part of a page at the simple level; nobody else hides or shows that part."""

    def __init__(self, part: QWidget) -> None:
        super().__init__(part)
        self._part = part
        chosen.changed.connect(self._follow)
        # Shown before it stands in its page it would be a window of its own.
        if is_simple():
            part.hide()

    def _follow(self) -> None:
        self._part.setVisible(not is_simple())
