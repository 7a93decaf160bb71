"""Turns to draw: long texts are drawn a slice at a time, one after the other, and the window goes on."""

from __future__ import annotations

import time
from collections import deque
from typing import Protocol

import shiboken6
from PySide6.QtCore import QObject, QTimer

_BUDGET = 0.008
"""Seconds of one turn."""


class Drawn(Protocol):
    """A text with more to draw."""

    def draw_slice(self) -> bool:
        """Draw a little; return True where there is more."""


class DrawingTurns(QObject):
    """Gives each text its turn; one for the whole program."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: deque[Drawn] = deque()
        self._next = QTimer(self)
        self._next.setSingleShot(True)
        self._next.setInterval(0)
        self._next.timeout.connect(self._on_turn)

    def wait(self, text: Drawn) -> None:
        """Let a text draw as soon as it is its turn."""
        if text not in self._waiting:
            self._waiting.append(text)
        if not self._next.isActive():
            self._next.start()

    def _on_turn(self) -> None:
        until = time.perf_counter() + _BUDGET
        while self._waiting and time.perf_counter() < until:
            text = self._waiting[0]
            # A message that was taken away meanwhile is drawn no more.
            if not shiboken6.isValid(text) or not text.draw_slice():
                self._waiting.popleft()
        if self._waiting:
            self._next.start()


_made: list[DrawingTurns] = []


def turns() -> DrawingTurns:
    """Return the one that gives turns; it is made when the first long text comes."""
    if not _made or not shiboken6.isValid(_made[0]):
        _made[:] = [DrawingTurns()]
    return _made[0]
