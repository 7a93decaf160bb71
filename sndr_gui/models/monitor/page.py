"""The view-model of Monitor: measured series over a range, then live; and the requests."""

from __future__ import annotations

import time

from PySide6.QtCore import Signal

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.engines import Request, RequestState
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import Sample, TelemetryPage, TelemetryQuery
from sndr_gui.host.session import Session
from sndr_gui.host.state import OPEN_REQUESTS
from sndr_gui.kit import formats
from sndr_gui.kit.rows import Column, RowsModel
from sndr_gui.models.monitor.lines import Line, joined, line_name
from sndr_gui.models.window.live_model import LiveModel
from sndr_gui.models.window.throttle import Throttle

RANGES = (("5 min", 300), ("30 min", 1800), ("1 h", 3600), ("6 h", 21600), ("24 h", 86400))
_POINTS = 600
_TONES = {
    RequestState.DONE: "good",
    RequestState.FAILED: "bad",
    RequestState.CANCELLED: "warn",
    RequestState.WAITING: "muted",
}


def request_columns() -> list[Column[Request]]:
    """Return the columns of the list of requests."""

    def muted(_request: Request) -> str:
        return "muted"

    def tip(request: Request) -> str:
        return request.problem.sentence() if request.problem else f"{request.route} · {request.id}"

    return [
        Column(
            "Time",
            lambda r: time.strftime("%H:%M:%S", time.localtime(r.created_at)),
            lambda r: r.created_at,
            muted,
        ),
        Column("State", lambda r: r.state.value, None, lambda r: _TONES.get(r.state, "accent"), tip=tip),
        Column("Model", lambda r: r.model, tip=tip),
        Column("Waited", lambda r: formats.duration(r.waited), lambda r: r.waited or 0, muted, right=True),
        Column("First token", lambda r: formats.duration(r.ttft), lambda r: r.ttft or 0, muted, right=True),
        Column("Decode", lambda r: formats.rate(r.decode_rate), lambda r: r.decode_rate or 0, right=True),
        Column(
            "In", lambda r: formats.count(r.prompt_tokens), lambda r: r.prompt_tokens or 0, muted, right=True
        ),
        Column(
            "Out",
            lambda r: formats.count(r.generated_tokens),
            lambda r: r.generated_tokens or 0,
            muted,
            right=True,
        ),
        Column(
            "Client",
            lambda r: r.client.split(" ")[0] or formats.UNMEASURED,
            None,
            muted,
            tip=lambda r: r.client,
        ),
    ]


class MonitorModel(LiveModel):
    """The model of Monitor.

    Signals:
        history_changed: every line is new
        sampled: new points at the end of the lines
        requests_changed: the list of requests is new
    """

    history_changed = Signal()
    sampled = Signal()
    requests_changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.lines: dict[str, Line] = {}
        self.range_seconds = RANGES[0][1]
        self.step = 1.0
        self.loaded = False
        self.requests: RowsModel[Request] = RowsModel(request_columns(), lambda request: request.id, self)
        self._shown = False
        # Requests change with every token; the table is drawn at most four times a second.
        self._throttle = Throttle(self, 250, self._fill_requests)
        session.state.sampled.connect(self._on_sample)
        session.state.request_changed.connect(self._on_request)
        session.state.host_changed.connect(self._on_connected)
        session.state.engines_changed.connect(self.throttle.trigger)
        session.connection.changed.connect(self._on_link)

    @property
    def stale(self) -> str:
        """The age of the graphs, while the host is away."""
        lost = self.session.connection.lost_at
        return f"No connection: last values {formats.age(time.time() - lost)}" if lost else ""

    def set_shown(self, shown: bool) -> None:
        """Read the history when the page is first looked at."""
        super().set_shown(shown)
        self._shown = shown
        if shown:
            if not self.loaded:
                self.load()
            self._fill_requests()

    def set_range(self, seconds: int) -> None:
        """Look further back, or closer."""
        if seconds != self.range_seconds:
            self.range_seconds = seconds
            self.load()

    def load(self) -> None:
        """Read the history of the range."""

        async def work(client: AsyncControlClient) -> None:
            step = max(1.0, self.range_seconds / _POINTS)
            since = time.time() - self.range_seconds
            self._take(await client.call(ops.TELEMETRY, TelemetryQuery(names=(), since=since, step=step)))

        if self.session.connection.connected:
            self.session.command("telemetry", work)

    def _take(self, page: TelemetryPage) -> None:
        self.loaded = True
        self.step = page.step
        self.lines = {}
        for entry in page.series:
            name = line_name(entry.name)
            at, values = list(entry.at), list(entry.values)
            line = Line(name, entry.unit, entry.title, entry.source, entry.peaks, at, values)
            self.lines[name] = joined(self.lines[name], line) if name in self.lines else line
        self.history_changed.emit()

    def _on_connected(self) -> None:
        if self._shown and self.loaded:
            return
        if self._shown:
            self.load()

    def _on_link(self) -> None:
        if self.session.connection.connected and self._shown:
            self.load()
            self._fill_requests()
        self.changed.emit()

    def _on_sample(self, sample: Sample) -> None:
        if not self.loaded:
            return
        unknown = False
        cut = sample.at - self.range_seconds
        for name, value in sample.values.items():
            line = self.lines.get(line_name(name))
            if line is None:
                unknown = True
                continue
            line.add(sample.at, value, self.step)
            line.cut(cut)
        if unknown and self._shown:
            self.load()
        elif self._shown:
            self.sampled.emit()

    def group(self, unit: str) -> list[Line]:
        """Return the lines of one unit."""
        return [line for line in self.lines.values() if line.unit == unit]

    def memory(self) -> list[Line]:
        """Return the lines of the memory graph: VRAM where there is any, else RAM; and the engine's part."""
        lines = self.group("bytes")
        graphics = [line for line in lines if line.name.startswith("gpu") and line.name.endswith("used")]
        others = [line for line in lines if not line.name.startswith("gpu")]
        if graphics:
            return graphics[:3] + [line for line in others if "engine" in line.name][:1]
        return [line for line in others if "total" not in line.name and "free" not in line.name][:4]

    # Requests.

    def _on_request(self, _request: Request) -> None:
        if self._shown:
            self._throttle.trigger()

    def _fill_requests(self) -> None:
        rows = sorted(self.session.state.requests.values(), key=lambda entry: entry.created_at, reverse=True)
        rows.sort(key=lambda entry: entry.state not in OPEN_REQUESTS)
        self.requests.set_rows(rows)
        self.requests_changed.emit()

    def cancel(self, request: Request) -> None:
        """Cancel one request."""

        async def work(client: AsyncControlClient) -> None:
            await client.call(ops.CANCEL_REQUEST, id=request.engine, request=request.id)

        self.session.command("cancel request", work)
