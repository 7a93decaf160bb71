"""The moment that the pages look at: now, or one of the past that all of them show together."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from engine_host.protocol.language import tr
from sndr_gui.kit import formats

STEPS = 1000
"""Places of the scrubber; the last one is now."""


class TimeTravel(QObject):
    """One moment for all pages of a host.

    Signals:
        changed: another moment is looked at, or now again
    """

    changed = Signal()

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        super().__init__()
        # Not as a default: a clock that a test stops would go on here.
        self._clock = clock or time.time
        self.at: float | None = None
        self._edge = 0.0
        self.span = 300.0

    @property
    def now(self) -> float:
        """The right edge of what is shown: the present, or that of when it was left."""
        return self._clock() if self.at is None else self._edge

    @property
    def place(self) -> int:
        """The place of the scrubber, 0 to `STEPS`."""
        if self.at is None:
            return STEPS
        return min(STEPS - 1, max(0, round(STEPS * (1 - (self._edge - self.at) / self.span))))

    @property
    def said(self) -> str:
        """The moment in words; empty for now."""
        if self.at is None:
            return ""
        same_day = time.strftime("%j", time.localtime(self.at)) == time.strftime("%j", time.localtime())
        shown = time.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M:%S", time.localtime(self.at))
        return tr("You look at {shown}, {age}", shown=shown, age=formats.age(self._clock() - self.at))

    def look_at(self, at: float) -> None:
        """Look at a moment; one that is still to come is now."""
        now = self.now
        if at >= now:
            self.back()
            return
        if self.at is None:
            self._edge = now
        at = max(at, self._edge - self.span)
        if at != self.at:
            self.at = at
            self.changed.emit()

    def scrub(self, place: int) -> None:
        """Look at a place of the scrubber; the last one is now."""
        if place >= STEPS:
            self.back()
        elif place != self.place:
            self.look_at(self.now - self.span * (1 - place / STEPS))

    def set_span(self, seconds: float) -> None:
        """Show so many seconds up to now; the moment stays where it is among them."""
        if seconds == self.span:
            return
        self.span = seconds
        if self.at is not None:
            self._edge = self._clock()
            self.at = max(self.at, self._edge - seconds)
        self.changed.emit()

    def back(self) -> None:
        """Look at now again."""
        if self.at is not None:
            self.at = None
            self.changed.emit()
