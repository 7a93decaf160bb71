"""Judge whether an engine decodes as fast as its hardware allows, so that no setting makes it faster."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean as mean

from engine_host.core.diagnosis.work import ENOUGH, Busy, Ceiling, Measured
from engine_host.protocol.bench.diagnosis import SlowCause, SlowReason
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Fix
from engine_host.protocol.language import tr

NEAR = 0.75
"""The share of the ceiling from which it counts as reached: good kernels move 80 % of a copy's bytes."""
BEYOND = 1.1
"""The share above which a ceiling is not believed: what it was computed from does not hold."""
_LEAST = 0.1


@dataclass(frozen=True)
class Reached:
    """The rates of an engine in the steps with so many streams, beside what its hardware allows."""

    streams: int
    depth: int | None
    ceiling: float
    rates: tuple[float, ...]

    @property
    def near(self) -> tuple[float, ...]:
        """The rates that count as the ceiling's."""
        return tuple(rate for rate in self.rates if rate >= NEAR * self.ceiling)


def ceiling_causes(busy: Busy, measured: Measured) -> Iterator[SlowCause]:
    """Return the one cause that nothing is wrong: the memory's bandwidth."""
    found = reached(busy, measured)
    steps, near = sum(len(one.rates) for one in found), sum(len(one.near) for one in found)
    if not near or near / steps < _LEAST or beyond(found):
        return
    best = max(found, key=lambda one: len(one.near))
    rate = mean(best.near)
    yield SlowCause(
        reason=SlowReason.ROOFLINE,
        engine=busy.engine.name,
        sentence=tr(
            "It decodes {rate:.0f} tokens a second, {reached:.0%} of the {most:.0f} that the memory's "
            "bandwidth allows {streams} streams: other settings make the same model hardly faster.",
            rate=rate,
            reached=rate / best.ceiling,
            most=best.ceiling,
            streams=best.streams,
        ),
        share=near / steps,
        evidence={
            "decode_rate": round(rate, 1),
            "ceiling": round(best.ceiling, 1),
            "streams": float(best.streams),
            **({} if best.depth is None else {"context": float(best.depth)}),
        },
        fix=Fix(
            text="Fewer bytes a token are what is left: smaller weights, a smaller KV type, or draft tokens.",
            command=f"sndr fit {busy.engine.plan.model} --streams {best.streams}",
        ),
    )


def beyond(found: list[Reached]) -> bool:
    """Tell whether more was measured than could be, so that nothing can be said of the ceiling."""
    return any(mean(one.rates) > BEYOND * one.ceiling for one in found)


def reached(busy: Busy, measured: Measured) -> list[Reached]:
    """Return how near it came, by the number of streams; nothing where too little or no ceiling is known."""
    ceiling = measured.ceilings.get(busy.engine.id)
    rates, running = (measured.of(busy.engine, name) for name in ("decode_rate", "requests.running"))
    by_streams: dict[int, list[int]] = {}
    for step in sorted(busy.steps):
        streams = round(running[step] or 0) if step < len(running) else 0
        if streams and step < len(rates) and rates[step]:
            by_streams.setdefault(min(streams, busy.engine.plan.streams), []).append(step)
    enough = {streams: steps for streams, steps in by_streams.items() if len(steps) >= ENOUGH}
    if ceiling is None:
        return []
    found = (_of_streams(busy.engine, measured, ceiling, streams, steps) for streams, steps in enough.items())
    return [one for one in found if one is not None]


def _of_streams(
    engine: Engine, measured: Measured, ceiling: Ceiling, streams: int, steps: list[int]
) -> Reached | None:
    of_these = Busy(engine, frozenset(steps))
    length = of_these.mean(measured.of(engine, "acceptance_length"))
    depth = _depth(of_these, measured, streams)
    allowed = ceiling(streams, depth, length)
    most = allowed.decode_all_streams if depth is None else allowed.all_streams_at_depth
    if most is None:
        return None
    if engine.plan.speculation != "off":
        if length is None:
            # How many tokens a step brings is not known.
            return None
        # Drafts that are found in the text read nothing, and the ceiling does not count on them.
        most *= max(length / allowed.tokens_per_step, 1.0)
    rates = [rate for step in steps if (rate := measured.of(engine, "decode_rate")[step]) is not None]
    return Reached(streams, depth, most, tuple(rates))


def _depth(busy: Busy, measured: Measured, streams: int) -> int | None:
    """Return the tokens that a stream has behind it, in the mean; None where the engine does not count."""
    readings = busy.engine.readings
    share = busy.mean(measured.of(busy.engine, "kv.share"))
    if readings is None or not readings.kv_capacity or share is None:
        return None
    kept = busy.mean(measured.of(busy.engine, "kv.cached")) or 0.0
    return max(round((share - kept) * readings.kv_capacity / streams), 1)
