"""Computes memory again when other processes hold more or less than when it was computed."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject

from sndr_gui.host.state import HostState
from sndr_gui.models.fit.query import FitQuery

# Bytes: less does not change what is shown by more than its last digit.
_MOVED = 512 * 1024**2
# Seconds: a model that is being loaded, or a build, moves it all the time.
_APART = 4.0


class MemoryWatch(QObject):
    """Compares each measurement of used memory with the one that the newest answer was made beside."""

    def __init__(self, state: HostState, fit: FitQuery, wanted: Callable[[], bool]) -> None:
        """`wanted`: whether somebody looks, and the memory is not on the move by what they started."""
        super().__init__()
        self._state, self._fit, self._wanted = state, fit, wanted
        self._report: object = None
        self._seen: dict[str, float] = {}
        self._at = 0.0
        fit.changed.connect(self._on_answer)
        state.sampled.connect(self._on_sample)

    def _used(self) -> dict[str, float]:
        host = self._state.host
        names = ["ram.used", *(f"gpu.{gpu.index}.memory.used" for gpu in (host.gpus if host else ()))]
        found = {name: self._state.measured(name) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def _on_answer(self) -> None:
        if self._fit.report is not self._report:
            self._report = self._fit.report
            self._seen, self._at = self._used(), time.monotonic()

    def _on_sample(self, _sample: object) -> None:
        if self._report is None or self._fit.waiting or not self._wanted():
            return
        if time.monotonic() - self._at < _APART:
            return
        used = self._used()
        if any(abs(value - self._seen.get(name, value)) > _MOVED for name, value in used.items()):
            self._fit.refresh()
        # A series that had not been measured yet when the answer came is compared from now on.
        self._seen = {**used, **self._seen}
