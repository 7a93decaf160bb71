"""The metrics of the running engine: speed, memory, KV cache, requests."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from statistics import median

from PySide6.QtCore import QObject, Signal

from engine_host.protocol.engines import Engine, EngineState, Request
from engine_host.protocol.language import tr
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.models.engine.now import kv_tokens_now, memory_now
from sndr_gui.models.engine.trends import Points, Trends

ONE, ALL = tr("Decode, one request"), tr("Decode, all streams")


@dataclass(frozen=True)
class Metric:
    """One number on a card, what stands below it, and where it comes from or why it is not there."""

    caption: str
    value: str
    note: str
    why: str = ""


class EngineMetrics(QObject):
    """The metrics of one engine, and its decode rate of the last minutes.

    Signals:
        changed: a sample came
    """

    changed = Signal()

    def __init__(self, session: Session, trends: Trends | None = None) -> None:
        super().__init__()
        self.session = session
        self._trends = trends or Trends(session, ("decode_rate",))
        self._trends.changed.connect(self.changed)

    @property
    def trend(self) -> Points:
        """The decode rate of all streams over the last minutes."""
        return self._trends.points("decode_rate")

    @property
    def engine(self) -> Engine | None:
        """The engine on the page."""
        return self._trends.engine

    def values(self) -> tuple[Metric, ...]:
        """Return the four cards: decode, memory, KV cache, requests."""
        if self.engine is not None and not self.is_live:
            gone = Metric("", formats.UNMEASURED, tr("not running"))
            captions = (ONE, tr("KV cache"), tr("Requests"))
            decode, kv, requests = (replace(gone, caption=caption) for caption in captions)
            return (decode, self._memory(), kv, requests)
        return (self._decode(), self._memory(), self._kv(), self._requests())

    @property
    def is_live(self) -> bool:
        """True while the engine on the page has not ended: the last numbers of a dead one are no numbers."""
        engine = self.engine
        return engine is not None and engine.state not in (EngineState.FAILED, EngineState.UNLOADED)

    def _live(self, name: str) -> float | None:
        """Return the newest value of a series of the engine."""
        engine = self.engine
        if engine is None:
            return None
        # A reading that came with a state of the engine may be newer than the last sample.
        told_at = engine.readings.at if engine.readings else 0.0
        return self.session.state.measured(f"engine.{engine.id}.{name}", told_at)

    def _decode(self) -> Metric:
        engine = self.engine
        if engine is None:
            return Metric(ONE, formats.UNMEASURED, tr("no engine runs"))
        now = time.time()
        done = [entry for entry in self._finished() if entry.decode_rate is not None]
        fresh = [entry.decode_rate or 0.0 for entry in done if now - (entry.ended_at or 0.0) < 60]
        if fresh:
            note = tr("median of {requests} in 60 s", requests=formats.plural(len(fresh), "request"))
            return Metric(ONE, formats.rate(median(fresh)), note)
        # A second in which an answer began or ended is only partly full; the median leaves those out.
        rates = [value for at, value in self.trend if value and now - at < 60]
        if rates:
            return Metric(ALL, formats.rate(median(rates)), tr("median over 60 s"))
        if done:
            note = tr("last request, {age}", age=formats.age(now - (done[0].ended_at or now)))
            return Metric(ONE, formats.rate(done[0].decode_rate), note)
        note = tr("not measured") if self._any_request(engine) else tr("no request yet")
        return Metric(ONE, formats.UNMEASURED, note)

    def _any_request(self, engine: Engine) -> bool:
        return any(entry.engine == engine.id for entry in self.session.state.requests.values())

    def _finished(self) -> list[Request]:
        engine = self.engine
        done = [entry for entry in self.session.state.requests.values() if entry.ended_at is not None]
        mine = [entry for entry in done if engine is not None and entry.engine == engine.id]
        return sorted(mine, key=lambda entry: entry.ended_at or 0.0, reverse=True)

    def _aged(self, note: str) -> str:
        """Return a note with the age of the newest sample, when it is old."""
        sample = self.session.state.sample
        old = time.time() - sample.at if sample else 0.0
        return f"{formats.age(old)} · {note}" if old > 15 else note

    def _memory(self) -> Metric:
        host, engine = self.session.state.host, self.engine
        if host is None:
            return Metric(tr("Memory"), formats.UNMEASURED, "")
        state = self.session.state
        if host.gpus:
            used = sum(state.measured(f"gpu.{gpu.index}.memory.used") or gpu.memory_used for gpu in host.gpus)
            total = sum(gpu.memory_total for gpu in host.gpus)
            where = formats.plural(len(host.gpus), "GPU")
            note = tr("{where} · {size} free", where=where, size=formats.size(total - used))
            return Metric("VRAM", formats.used_of(used, total), self._aged(note))
        ram = state.measured("ram.used") or host.ram_used
        note = tr("{size} free", size=formats.size(host.ram_total - ram))
        memory = memory_now(state, engine) if engine is not None and self.is_live else None
        if memory is not None:
            note = tr("engine {size} · {note}", size=formats.size(memory), note=note)
        return Metric("RAM", formats.used_of(ram, host.ram_total), self._aged(note))

    def _kv(self) -> Metric:
        engine = self.engine
        if engine is None:
            return Metric(tr("KV cache"), formats.UNMEASURED, tr("no engine runs"))
        readings = engine.readings
        tokens = kv_tokens_now(self.session.state, engine)
        capacity = readings.kv_capacity if readings else None
        if tokens is None or not capacity:
            return Metric(tr("KV cache"), formats.UNMEASURED, tr("not measured"))
        note = tr("{count} of {count_2} tokens", count=formats.count(tokens), count_2=formats.count(capacity))
        return Metric(tr("KV cache"), formats.percent(tokens, capacity), self._aged(note))

    def _requests(self) -> Metric:
        engine = self.engine
        if engine is None:
            return Metric(tr("Requests"), formats.UNMEASURED, tr("no engine runs"))
        readings = engine.readings
        slots = readings.slots_total if readings and readings.slots_total else engine.plan.streams
        running, waiting = self._live("requests.running"), self._live("requests.waiting")
        if running is None and readings is not None:
            running, waiting = readings.slots_busy, readings.requests_waiting
        if running is None:
            return Metric(tr("Requests"), formats.UNMEASURED, tr("not measured"))
        note = tr("{waiting} waiting", waiting=f"{waiting:.0f}") if waiting else tr("none waiting")
        return Metric(
            tr("Requests"),
            tr("{running} of {slots}", running=f"{running:.0f}", slots=slots),
            self._aged(note),
        )
