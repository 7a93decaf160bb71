"""The last minutes of an engine's series, those before this window came included."""

from __future__ import annotations

import time
from collections import deque

from PySide6.QtCore import QObject, Signal

from engine_host.protocol import Sample
from sndr_gui.client import HostClient
from sndr_gui.errors import HostError
from sndr_gui.session import Session

TREND_SECONDS = 300.0
Points = deque[tuple[float, float | None]]


class Trends(QObject):
    """Some series of the newest engine, such as `decode_rate`; times in seconds since the epoch.

    Signals:
        changed: a sample came, or the past was read
    """

    changed = Signal()

    def __init__(self, session: Session, names: tuple[str, ...]) -> None:
        super().__init__()
        self.session = session
        self._points: dict[str, Points] = {name: deque(maxlen=2000) for name in names}
        self._of = ""
        session.state.sampled.connect(self._on_sample)
        session.state.engines_changed.connect(self._on_connected)
        session.link.changed.connect(self._on_connected)

    def points(self, name: str) -> Points:
        """What was measured of one series; a gap is None."""
        return self._points[name]

    def _on_sample(self, sample: Sample) -> None:
        engine = self.session.state.engine
        for name, points in self._points.items():
            series = f"engine.{engine.id}.{name}" if engine else ""
            if series in sample.values:
                points.append((sample.at, sample.values[series]))
        self.changed.emit()

    def _on_connected(self) -> None:
        engine = self.session.state.engine
        if engine is None or self._of == engine.id or not self.session.link.connected:
            return
        self._of = engine.id
        series = {f"engine.{engine.id}.{name}": points for name, points in self._points.items()}

        async def work(client: HostClient) -> None:
            page = await client.telemetry(tuple(series), time.time() - TREND_SECONDS, 1.0)
            for entry in page.series:
                if (points := series.get(entry.name)) is not None:
                    points.clear()
                    points.extend(zip(entry.at, entry.values, strict=True))
            self.changed.emit()

        self.session.command("trend", work, failed=self._on_no_past)

    def _on_no_past(self, _error: HostError) -> None:
        """Without the past the trend begins now."""
