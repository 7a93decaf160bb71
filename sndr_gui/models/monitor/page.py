"""The view-model of Monitor: measured series over a range, then live; and the requests."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection
from dataclasses import replace

from PySide6.QtCore import Signal

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.engines import Engine, Request, RequestState
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import Sample, TelemetryPage, TelemetryQuery
from sndr_gui.host.choice import LIVE_STATES
from sndr_gui.host.session import Session
from sndr_gui.host.state import OPEN_REQUESTS
from sndr_gui.kit import formats, measured_by
from sndr_gui.kit.rows import Column, RowsModel
from sndr_gui.kit.setting_words import word_of
from sndr_gui.models.monitor.as_of import as_of
from sndr_gui.models.monitor.capture import CaptureModel
from sndr_gui.models.monitor.energy import EnergyModel
from sndr_gui.models.monitor.graphs import KV, GraphRow
from sndr_gui.models.monitor.inspector import InspectorModel
from sndr_gui.models.monitor.kv_pool import KvPool, pool_now, pool_then
from sndr_gui.models.monitor.lens import LensModel
from sndr_gui.models.monitor.lines import Line, in_order, one_after_another, split_name
from sndr_gui.models.monitor.marks import MarksModel, clock, told
from sndr_gui.models.monitor.memory import MemoryModel
from sndr_gui.models.monitor.playback import PlaybackModel
from sndr_gui.models.monitor.unmeasured import Unmeasured, unmeasured
from sndr_gui.models.monitor.written import speed, told_in, written
from sndr_gui.models.window.live_model import LiveModel
from sndr_gui.models.window.throttle import Throttle
from sndr_gui.models.window.time_travel import TimeTravel

RANGES = (
    *((formats.measure(str(number), "min"), 60 * number) for number in (5, 30)),
    *((formats.measure(str(number), "h"), 3600 * number) for number in (1, 6, 24)),
    (formats.measure("30", "d"), 2_592_000),
)
_POINTS = 600
_WITHIN = 10.0
_ENGINE_MEMORY = GraphRow(tr("Memory"), "memory", formats.size, of_engine=True)
_ALWAYS = "ram.used"
"""The series that is measured whenever the host runs."""
_MEMORY_USED = r"ram\.used|(recorded\.)?gpu\.\d+\.memory\.used"
_TONES = {
    RequestState.DONE: "good",
    RequestState.FAILED: "bad",
    RequestState.CANCELLED: "warn",
    RequestState.LOADING: "muted",
    RequestState.WAITING: "muted",
}


def state_of(request: Request) -> str:
    """Return a request's state in a word, with its place while it waits."""
    if request.state is RequestState.WAITING:
        return tr("queued, {place}.", place=request.place) if request.place is not None else tr("queued")
    if request.state is RequestState.PREFILL and request.prefill_tokens is not None and request.prefill_of:
        return f"{word_of(request.state.value)} {formats.percent(request.prefill_tokens, request.prefill_of)}"
    return word_of(request.state.value)


def request_columns(name_of: Callable[[str], str]) -> list[Column[Request]]:
    """Return the columns of the list of requests; `name_of` tells an engine's public name by its id."""

    def muted(_request: Request) -> str:
        return "muted"

    def tip(request: Request) -> str:
        return request.problem.sentence() if request.problem else f"{request.route} · {request.id}"

    def client_tip(request: Request) -> str:
        key = tr("key {key}", key=request.key) if request.key else ""
        return " · ".join(filter(None, (request.client, key)))

    return [
        Column(
            tr("Time"),
            lambda r: time.strftime("%H:%M:%S", time.localtime(r.created_at)),
            lambda r: r.created_at,
            muted,
        ),
        Column(tr("State"), state_of, None, lambda r: _TONES.get(r.state, "accent"), tip=tip),
        Column(
            tr("Engine"),
            lambda r: r.provider or name_of(r.engine),
            tip=lambda r: f"{name_of(r.engine)} ({r.engine})",
        ),
        Column(tr("Model"), lambda r: r.destination, tip=tip),
        Column(
            tr("Client"),
            lambda r: r.client_name or r.client.split(" ")[0] or formats.UNMEASURED,
            None,
            muted,
            tip=client_tip,
        ),
        Column(
            tr("Waited"), lambda r: formats.duration(r.waited), lambda r: r.waited or 0, muted, right=True
        ),
        Column(
            tr("First token"),
            lambda r: formats.duration(r.ttft),
            lambda r: r.ttft or 0,
            muted,
            right=True,
            about=measured_by.ENDPOINT,
        ),
        Column(tr("Decode"), speed, lambda r: r.decode_rate or r.piece_rate or 0, right=True, tip=told_in),
        Column(
            tr("In"),
            lambda r: formats.count(r.prompt_tokens),
            lambda r: r.prompt_tokens or 0,
            muted,
            right=True,
        ),
        Column(
            tr("Cached"),
            lambda r: formats.count(r.cached_tokens),
            lambda r: r.cached_tokens or 0,
            muted,
            right=True,
        ),
        Column(
            tr("Out"),
            written,
            lambda r: r.generated_tokens or r.pieces or 0,
            muted,
            right=True,
            tip=told_in,
        ),
        Column(
            tr("Accepted"),
            lambda r: formats.percent(r.draft_accepted, r.draft_tokens),
            lambda r: formats.share_of(r.draft_accepted or 0, r.draft_tokens or 0),
            muted,
            right=True,
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

    def __init__(self, session: Session, past: TimeTravel | None = None) -> None:
        """`past` is the moment that other pages look at too."""
        super().__init__()
        self.session = session
        self.past = past or TimeTravel()
        self._series: dict[str, Line] = {}
        self._of = ""
        self.only = ""
        self.range_seconds = RANGES[0][1]
        self.step = 1.0
        self.loaded = False
        columns = request_columns(self.name_of)
        self.requests: RowsModel[Request] = RowsModel(columns, lambda request: request.id, self)
        self.capture = CaptureModel(session)
        self.lens = LensModel(session)
        self.marks = MarksModel(session)
        self.playback = PlaybackModel(session)
        self.holders = MemoryModel(session)
        self.energy = EnergyModel(session)
        self._shown = False
        # Of many requests some change at any time; the table is drawn at most four times a second.
        self._throttle = Throttle(self, 250, self._fill_requests)
        self._moved = Throttle(self, 60, self._on_moved)
        self.past.changed.connect(self._on_past)
        session.state.sampled.connect(self._on_sample)
        session.state.request_changed.connect(self._on_request)
        session.state.host_changed.connect(self._on_connected)
        session.state.engines_changed.connect(self._on_engines)
        session.connection.changed.connect(self._on_link)

    @property
    def stale(self) -> str:
        """The age of the graphs, while the host is away."""
        lost = self.session.connection.lost_at
        return tr("No connection: last values {age}", age=formats.age(time.time() - lost)) if lost else ""

    @property
    def several(self) -> bool:
        """True while several engines run."""
        return len(self.session.state.live) > 1

    @property
    def subtitle(self) -> str:
        """The line below the title."""
        engine = self.session.state.running
        if engine is None:
            others = len(self.session.state.live)
            return (
                tr("{other_engines} running", other_engines=formats.plural(others, "other engine"))
                if others
                else tr("no engine runs")
            )
        return f"{engine.name}  ·  {tr('live') if self.past.at is None else tr('of the past')}"

    def set_shown(self, shown: bool) -> None:
        """Read the history when the page is first looked at."""
        super().set_shown(shown)
        self._shown = shown
        if shown:
            if not self.loaded:
                self.load()
            self._fill_requests()
            self.capture.refresh()

    def set_range(self, seconds: int) -> None:
        """Look further back, or closer."""
        if seconds != self.range_seconds:
            self.range_seconds = seconds
            self.past.set_span(seconds)
            self.load()

    def load(self) -> None:
        """Read the history of the range."""

        async def work(client: AsyncControlClient) -> None:
            step = max(1.0, self.range_seconds / _POINTS)
            since = self.past.now - self.range_seconds
            self._take(await client.call(ops.TELEMETRY, TelemetryQuery(names=(), since=since, step=step)))

        if self.session.connection.connected:
            self.session.read("telemetry", work)
            self.marks.load(self.past.now - self.range_seconds)

    def _take(self, page: TelemetryPage) -> None:
        self.loaded = True
        self.step = page.step
        self._series = {}
        for entry in page.series:
            at, values = list(entry.at), list(entry.values)
            line = Line(entry.name, entry.unit, entry.title, entry.source, entry.peaks, at, values)
            self._series[entry.name] = line
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
        cut = min(sample.at, self.past.now) - self.range_seconds
        for name, value in sample.values.items():
            line = self._series.get(name) or self._begun(name)
            if line is None:
                unknown = True
                continue
            line.add(sample.at, value, self.step)
            line.cut(cut)
        if unknown and self._shown:
            self.load()
        elif self._shown and self.past.at is None:
            self.sampled.emit()

    def _on_past(self) -> None:
        if self._shown:
            self._moved.trigger()

    def _on_moved(self) -> None:
        if self._shown:
            self._fill_requests()
            self.history_changed.emit()
            self.changed.emit()

    def pool(self) -> KvPool | None:
        """Return the KV pool of the engine shown, at the moment that is looked at."""
        engine = self.engine
        readings = engine.readings if engine is not None else None
        if self.past.at is None:
            return pool_now(readings)
        then = {line.name: line.value_at(self.past.at, self.within) for line in self.lines_of(KV)}
        capacity = readings.kv_capacity if readings is not None else None
        return pool_then(then.get("engine.kv.share"), then.get("engine.kv.cached"), capacity)

    @property
    def last_event(self) -> str:
        """The last event before the moment that is looked at; empty where nothing is known."""
        at = self.past.at
        before = [mark for mark in self.marks.shown() if at is not None and mark.at <= at]
        mark = max(before, key=lambda one: one.at, default=None)
        return "" if mark is None else f"{clock(mark.at)} {told(mark)}"

    def _begun(self, name: str) -> Line | None:
        """Begin the series of another engine like those of engines before it; None where there was none."""
        engine, rest = split_name(name)
        like = next((line for line in self._series.values() if split_name(line.name)[1] == rest), None)
        if not engine or like is None:
            return None
        made = self._series[name] = Line(name, like.unit, like.title, like.source, like.peaks)
        return made

    @property
    def engine(self) -> Engine | None:
        """The engine of the graphs."""
        return self.session.state.engine

    def _on_engines(self) -> None:
        of = self.engine.id if self.engine is not None else ""
        if of != self._of:
            self._of = of
            self.history_changed.emit()
            self.changed.emit()
        self.throttle.trigger()

    def lines_of(self, graph: GraphRow) -> list[Line]:
        """Return the lines of a graph; an engine's are led by those of engines that ended before it."""
        if not graph.of_engine:
            lines = [line for name, line in self._series.items() if graph.has(name)]
            return sorted(lines, key=in_order)
        shown = self.engine.id if self.engine is not None else ""
        beside = {engine.id for engine in self.session.state.live}
        own: dict[str, Line] = {}
        others: dict[str, list[Line]] = {}
        for line in self._series.values():
            engine, name = split_name(line.name)
            if engine and graph.has(name):
                others.setdefault(name, [])
                if engine == shown:
                    own[name] = line
                elif engine not in beside:
                    others[name].append(line)
        led = ((name, one_after_another(own.get(name), lines)) for name, lines in others.items())
        # One name for all: to the graph and its legend they are one line.
        found = [
            replace(line, name=f"engine.{name}", ended=self._ended(split_name(line.name)[0]))
            for name, line in led
            if line is not None
        ]
        return sorted(found, key=in_order)

    @property
    def within(self) -> float:
        """Seconds that a value may be away from the time that it is told for."""
        return max(_WITHIN, 2.5 * self.step)

    def unmeasured(self) -> tuple[Unmeasured, ...]:
        """Return the times of the range in which the host measured nothing."""
        since = self.past.now - self.range_seconds
        return unmeasured(self._series.get(_ALWAYS), since, self.past.now, self.within)

    @property
    def no_gpu(self) -> Finding | None:
        """Why no GPU is listed, while no recorded one is shown instead."""
        host = self.session.state.host
        return host.no_gpu if host is not None and host.playback is None else None

    def _ended(self, engine_id: str) -> bool:
        """Return True for an engine that runs no more; one that nobody knows has ended once others go on."""
        engine = self.session.state.engines.get(engine_id)
        if engine is not None:
            return engine.state not in LIVE_STATES
        ends = {name: line.at[-1] for name, line in self._series.items() if line.at}
        own = [at for name, at in ends.items() if split_name(name)[0] == engine_id]
        return not own or max(ends.values()) - max(own) > self.within

    def memory(self) -> list[Line]:
        """Return the lines of the memory graph: VRAM where there is any, else RAM; and the engines' parts."""
        used = [line for name, line in self._series.items() if re.fullmatch(_MEMORY_USED, name)]
        machine = [line for line in used if not line.name.startswith("ram")] or used
        engines = self.lines_of(_ENGINE_MEMORY)
        live = self.session.state.live
        if len(live) > 1:
            own = ((engine, self._series.get(f"engine.{engine.id}.memory")) for engine in live)
            kind = ", RAM" if machine and not machine[0].name.startswith("ram") else ""
            engines = [
                replace(line, title=f"{formats.shortened(engine.name, 18)}{kind}")
                for engine, line in own
                if line is not None
            ]
        return [*sorted(machine, key=in_order), *engines]

    # Requests.

    def _on_request(self, _request: Request) -> None:
        if self._shown:
            self._throttle.trigger()

    def name_of(self, engine_id: str) -> str:
        """Return the public name of an engine; of one that is gone its id."""
        engine = self.session.state.engines.get(engine_id)
        return engine.name if engine is not None else engine_id

    def engines_of_requests(self) -> tuple[tuple[str, str], ...]:
        """Return the engines that have requests in the list: label and id, all of them first."""
        ids = dict.fromkeys(request.engine for request in self.session.state.requests.values())
        return ((tr("All engines"), ""), *((self.name_of(one), one) for one in sorted(ids, key=self.name_of)))

    def show_only(self, engine_id: str) -> None:
        """List the requests of one engine; the empty id lists those of all."""
        self.only = engine_id
        self._fill_requests()

    def _fill_requests(self) -> None:
        requests: Collection[Request] = self.session.state.requests.values()
        if (at := self.past.at) is not None:
            requests = [then for request in requests if (then := as_of(request, at)) is not None]
        if self.only and all(request.engine != self.only for request in requests):
            self.only = ""
        asked = [request for request in requests if self.only in ("", request.engine)]
        rows = sorted(asked, key=lambda entry: entry.created_at, reverse=True)
        rows.sort(key=lambda entry: entry.state not in OPEN_REQUESTS)
        self.requests.set_rows(rows)
        self.requests_changed.emit()

    def inspector(self, request: Request) -> InspectorModel:
        """Return the model of a request's inspector."""
        return InspectorModel(self.session, request)

    def cancel(self, request: Request) -> None:
        """Cancel one request."""

        async def work(client: AsyncControlClient) -> None:
            await client.call(endpoint_ops.CANCEL_REQUEST, id=request.id)

        self.session.command("cancel request", work)
