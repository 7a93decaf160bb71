"""The cards, latencies and draft counts of one engine."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from engine_host.protocol.engine_settings.row import OFF
from engine_host.protocol.engines import Engine, Latency, Readings, Request, RequestState
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import EngineKind
from sndr_gui.kit import formats
from sndr_gui.models.engine.metrics import EngineMetrics, Metric
from sndr_gui.models.engine.trends import Points

# The engine's name of a histogram: how it is called here, and what it measures.
LATENCY_NAMES = {
    "TTFT": (tr("First token"), tr("time to first token (TTFT)")),
    "ITL": (tr("Between tokens"), tr("inter-token latency (ITL)")),
    "queue": (tr("Queue"), tr("waiting in the engine")),
    "prefill": (tr("Prefill"), tr("processing the prompt")),
    "decode": (tr("Decode"), tr("from the first token to the last")),
    "end to end": (tr("End to end"), tr("the whole request in the engine")),
}
_NOT_RUNNING = tr("Only a running engine is measured.")


@dataclass(frozen=True)
class LatencyRow:
    """One latency, as shown."""

    name: str
    about: str
    p50: str
    p95: str
    mean: str
    count: str


@dataclass(frozen=True)
class Speculation:
    """The counts of draft tokens."""

    method: str
    length: float | None
    drafted: int | None
    accepted: int | None
    by_position: tuple[float, ...]
    engine: str

    @property
    def sentence(self) -> str:
        """Acceptance length and counts in one line."""
        if self.length is None and not self.drafted:
            return tr("No draft tokens were verified yet.")
        parts = []
        if self.length is not None:
            parts.append(tr("{length} tokens per step", length=formats.number(self.length, ".2f")))
        if self.drafted and self.accepted is not None:
            share = formats.percent(self.accepted, self.drafted)
            counts = tr(
                "{count} of {count_2}",
                count=formats.count(self.accepted),
                count_2=formats.count(self.drafted),
            )
            parts.append(tr("{counts} draft tokens accepted, {share}", counts=counts, share=share))
        return "  ·  ".join(parts)

    @property
    def about(self) -> str:
        """The meaning of the bars, or the reason why there are none."""
        if self.by_position:
            return tr("Acceptance rate of draft token 1, 2, …; a step keeps those before the first miss.")
        if self.engine != EngineKind.VLLM:
            return tr("By position: not reported by llama.cpp.")
        return tr("By position: not measured yet.")


def cards(
    engine: Engine,
    readings: Readings | None,
    metrics: EngineMetrics,
    requests: Sequence[Request],
    prefill: Points,
) -> tuple[Metric, ...]:
    """Return the eight cards; `readings` is None for an engine that does not run."""
    decode, memory, kv, running = metrics.values()
    vllm = engine.engine == EngineKind.VLLM
    made = (
        _explained(
            decode, tr("Measured by the endpoint, for each request on its own; else the engine's counter.")
        ),
        _prompt(prefill, readings, vllm),
        _first_token(engine, readings, requests),
        _explained(running, tr("Requests being processed, of the most that run at once.")),
        _explained(kv, tr("Tokens in the KV cache, of its capacity.")),
        memory,
        _prefix(engine, readings, requests),
        _preemptions(readings, vllm),
    )
    if readings is not None:
        return made
    return tuple(
        card
        if card is memory
        else replace(card, value=formats.UNMEASURED, note=tr("not running"), why=_NOT_RUNNING)
        for card in made
    )


def _explained(value: Metric, why: str) -> Metric:
    return replace(value, why=why)


def _prompt(points: Points, readings: Readings | None, vllm: bool) -> Metric:
    """Return the prefill speed as the engine itself timed it."""
    caption = tr("Prefill, one request") if vllm else tr("Prefill, all streams")
    why = (
        tr(
            "vLLM's own timing, from a request's first step to its first token; reported "
            "when its answer ends."
        )
        if vllm
        else tr("llama.cpp's own timing: prompt tokens for each second that it spent on prompts.")
    )
    now = time.time()
    fresh = [value for at, value in points if value and now - at < 60]
    if fresh:
        return Metric(caption, formats.rate(median(fresh)), tr("median over 60 s"), why)
    last = next(((at, value) for at, value in reversed(points) if value), None)
    if last is not None:
        return Metric(
            caption, formats.rate(last[1]), tr("last prefill, {age}", age=formats.age(now - last[0])), why
        )
    if readings is not None and readings.prompt_tokens_total is not None:
        note = tr("{count} prompt tokens since the start", count=formats.count(readings.prompt_tokens_total))
        quiet = tr("No prefill in the last five minutes.")
        return Metric(caption, formats.UNMEASURED, note, quiet)
    return Metric(caption, formats.UNMEASURED, tr("not measured"), tr("Not reported by the engine."))


def _first_token(engine: Engine, readings: Readings | None, requests: Sequence[Request]) -> Metric:
    """Return the time to the first token."""
    if engine.engine == EngineKind.VLLM:
        caption = tr("First token (engine)")
        found = next((one for one in (readings.latencies if readings else ()) if one.name == "TTFT"), None)
        why = tr("Measured by the engine since its start; the median is read from its buckets.")
        if found is None or not found.count:
            return Metric(caption, formats.UNMEASURED, tr("no request yet"), why)
        note = tr("median of {requests}", requests=formats.plural(found.count, "request"))
        return Metric(caption, quantile_words(found.p50, found.p50_below), note, why)
    caption = tr("First token (endpoint)")
    why = tr("Measured by the endpoint: llama.cpp reports no latencies of its own.")
    times = [one.ttft for one in _finished(engine, requests) if one.ttft is not None]
    if not times:
        return Metric(caption, formats.UNMEASURED, tr("no request yet"), why)
    note = tr("median of {requests}", requests=formats.plural(len(times), "request"))
    return Metric(caption, formats.duration(median(times)), note, why)


def _prefix(engine: Engine, readings: Readings | None, requests: Sequence[Request]) -> Metric:
    """Return the share of prompt tokens that the prefix cache held."""
    caption = tr("Prefix cache")
    if engine.engine != EngineKind.VLLM:
        counted = [one for one in _finished(engine, requests) if one.cached_tokens is not None]
        asked = sum(one.prompt_tokens or 0 for one in counted)
        found = sum(one.cached_tokens or 0 for one in counted)
        why = tr("From responses at the endpoint: prompt tokens that a slot still held.")
        if not asked:
            return Metric(caption, formats.UNMEASURED, tr("no prompt yet"), why)
        return Metric(caption, formats.percent(found, asked), _found(found, asked), why)
    if readings is None or readings.prefix_queries_total is None or readings.prefix_hits_total is None:
        return Metric(caption, formats.UNMEASURED, tr("not measured"), tr("Not reported by vLLM."))
    if not readings.prefix_queries_total:
        chosen = next((one for one in engine.plan.settings if one.name == "prefix_caching"), None)
        if chosen is not None and chosen.value is False:
            why = tr("Started without a prefix cache.")
            if chosen.why:
                why = tr("Started without a prefix cache: {why}.", why=chosen.why)
            return Metric(caption, formats.UNMEASURED, tr("off"), why)
        return Metric(caption, formats.UNMEASURED, tr("no prompt yet"), tr("No prompt yet."))
    asked, found = readings.prefix_queries_total, readings.prefix_hits_total
    why = tr("vLLM's counters since its start: prompt tokens found, of those looked up.")
    return Metric(caption, formats.percent(found, asked), _found(found, asked), why)


def _found(found: int, asked: int) -> str:
    return tr("{count} of {count_2} prompt tokens", count=formats.count(found), count_2=formats.count(asked))


def _preemptions(readings: Readings | None, vllm: bool) -> Metric:
    caption = tr("Preemptions")
    why = tr("Requests that vLLM preempted and recomputed because the KV cache was full.")
    if not vllm:
        none = tr("llama.cpp never preempts: each request has its own slot.")
        return Metric(caption, formats.UNMEASURED, tr("none in llama.cpp"), none)
    count = readings.preemptions_total if readings else None
    if count is None:
        return Metric(caption, formats.UNMEASURED, tr("not measured"), tr("Not reported by vLLM."))
    note = tr("KV cache was full") if count else tr("KV cache was never full")
    return Metric(caption, formats.count(count), note, why)


def latencies(
    engine: Engine, readings: Readings | None, requests: Sequence[Request]
) -> tuple[LatencyRow, ...]:
    """Return the engine's own latencies, or where it has none those measured at the endpoint."""
    if readings is None:
        return ()
    if engine.engine == EngineKind.VLLM:
        return tuple(_engine_row(one) for one in readings.latencies)
    return _endpoint_rows(_finished(engine, requests))


def _engine_row(one: Latency) -> LatencyRow:
    name, about = LATENCY_NAMES.get(one.name, (one.name, ""))
    return LatencyRow(
        name,
        about,
        quantile_words(one.p50, one.p50_below),
        quantile_words(one.p95, one.p95_below),
        _time(one.mean),
        formats.count(one.count),
    )


def _endpoint_rows(done: Sequence[Request]) -> tuple[LatencyRow, ...]:
    columns = {
        "TTFT": [one.ttft for one in done],
        "ITL": [1 / one.decode_rate if one.decode_rate else None for one in done],
        "queue": [one.waited for one in done],
        "end to end": [one.ended_at - one.created_at if one.ended_at is not None else None for one in done],
    }
    rows = []
    for key, found in columns.items():
        values = sorted(value for value in found if value is not None)
        if values:
            name, about = LATENCY_NAMES[key]
            rank = max(0, math.ceil(0.95 * len(values)) - 1)
            p50, p95, mean = map(_time, (median(values), values[rank], fmean(values)))
            rows.append(LatencyRow(name, about, p50, p95, mean, formats.count(len(values))))
    return tuple(rows)


def latency_source(engine: Engine) -> str:
    """Return where the latencies come from, in a sentence."""
    if engine.engine == EngineKind.VLLM:
        return tr("Since the start, measured by the engine; quantiles are read from its buckets.")
    return tr("Of the last requests, measured by the endpoint: llama.cpp reports no latencies of its own.")


def speculation(engine: Engine, readings: Readings | None) -> Speculation | None:
    """Return the counts of draft tokens; None where nothing is drafted."""
    if engine.plan.speculation == OFF:
        return None
    found = readings or Readings(at=0)
    return Speculation(
        engine.plan.speculation,
        found.acceptance_length,
        found.draft_tokens_total,
        found.draft_accepted_total,
        found.acceptance_by_position,
        engine.engine,
    )


def _time(seconds: float | None) -> str:
    """Return a latency; what is too short for its unit is not nothing."""
    return (
        f"< {formats.measure('1', 'ms')}"
        if seconds is not None and 0 < seconds < 0.0005
        else formats.duration(seconds)
    )


def quantile_words(value: float | None, below: float | None) -> str:
    """Return a quantile, or the bound that it is below."""
    return f"< {formats.duration(below)}" if value is None and below is not None else _time(value)


def _finished(engine: Engine, requests: Sequence[Request]) -> list[Request]:
    """Return the requests that this engine answered to their end."""
    return [one for one in requests if one.engine == engine.id and one.state is RequestState.DONE]
