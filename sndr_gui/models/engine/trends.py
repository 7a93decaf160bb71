"""The last minutes of an engine's series, those before this window came included."""

from __future__ import annotations

import time
from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.engines import Engine
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import Sample, TelemetryQuery
from sndr_gui.host.session import Session
from sndr_gui.models.monitor.lines import Line

TREND_SECONDS = 300.0
Points = Sequence[tuple[float, float | None]]
_STEP = 1.0


class Trends(QObject):
    """Some series of the chosen engine, such as `decode_rate`; times in seconds since the epoch.

    Signals:
        changed: a sample came, or the past was read
    """

    changed = Signal()

    def __init__(self, session: Session, names: tuple[str, ...]) -> None:
        super().__init__()
        self.session = session
        # Steps as the host's own history has them: before and after the window came, a graph looks the same.
        self._lines = {name: Line(name, "", "", "", peaks=True) for name in names}
        self._of = ""
        session.state.sampled.connect(self._on_sample)
        session.state.engines_changed.connect(self.follow)
        session.connection.changed.connect(self._on_link)

    @property
    def engine(self) -> Engine | None:
        """The engine whose series these are."""
        return self.session.state.engine

    def points(self, name: str) -> Points:
        """Return the points of one series; a gap is None."""
        return tuple(zip(self._lines[name].at, self._lines[name].values, strict=True))

    def _on_sample(self, sample: Sample) -> None:
        engine = self.engine
        for name, line in self._lines.items():
            series = f"engine.{engine.id}.{name}" if engine else ""
            if series in sample.values:
                line.add(sample.at, sample.values[series], _STEP)
                line.cut(sample.at - TREND_SECONDS)
        self.changed.emit()

    def _on_link(self) -> None:
        if self.session.connection.connected:
            self.follow()
        else:
            # What was measured meanwhile is read when the host is back.
            self._of = ""

    def follow(self) -> None:
        """Read the past of the engine, when it is another one."""
        engine = self.engine
        if engine is None or self._of == engine.id or not self.session.connection.connected:
            return
        self._of = engine.id
        self._lines = {name: Line(name, "", "", "", peaks=True) for name in self._lines}
        series = {f"engine.{engine.id}.{name}": name for name in self._lines}

        async def work(client: AsyncControlClient) -> None:
            page = await client.call(
                ops.TELEMETRY,
                TelemetryQuery(names=tuple(series), since=time.time() - TREND_SECONDS, step=_STEP),
            )
            if self._of != engine.id:
                return
            for entry in page.series:
                if (name := series.get(entry.name)) is not None:
                    at, values = list(entry.at), list(entry.values)
                    self._lines[name] = Line(name, "", "", "", entry.peaks, at, values)
            self.changed.emit()

        self.session.command("trend", work, failed=self._on_no_past)

    def _on_no_past(self, _error: HostError) -> None:
        """Without the past the trend begins now."""
