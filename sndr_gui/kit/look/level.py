"""The level of the pages: what few people need is left out at the simple one."""

from enum import StrEnum

from PySide6.QtCore import QObject, Signal


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
