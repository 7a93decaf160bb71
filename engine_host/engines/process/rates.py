"""Token rates between two readings of an engine."""

from engine_host.protocol.engines import Readings

# Below this many seconds a difference of counters says more about the clock than about the engine.
_SHORTEST = 0.05
# Tokens a second; a time that says more is none.
_FASTEST = 1e12


def with_rates(before: Readings | None, now: Readings) -> Readings:
    """`now` with the prefill and decode rates (tokens/s) since `before`; None where one was not measured.

    Decode is what was generated over the time between the readings. Prefill is the engine's own timing of
    the prompts that it counted in between: an engine counts a prompt when it was read (vLLM its time when the
    answer ends), so the interval says nothing of how long that took. While a prompt may be under way and
    none was counted, the rate is not known. A counter that went back (the engine restarted, a slot was
    released between two reads) gives no rate.
    """
    if before is None:
        return now.model_copy(update={"decode_rate": None, "prefill_rate": None})
    return now.model_copy(update={"decode_rate": _decode(before, now), "prefill_rate": _prefill(before, now)})


def _decode(before: Readings, now: Readings) -> float | None:
    seconds = now.at - before.at
    tokens = _gained(before.generated_tokens_total, now.generated_tokens_total)
    return None if tokens is None or seconds < _SHORTEST else tokens / seconds


def _prefill(before: Readings, now: Readings) -> float | None:
    if now.prefill_rate is not None:
        return now.prefill_rate
    tokens = _gained(before.timed_prompt_tokens, now.timed_prompt_tokens)
    seconds = _gained(before.timed_prompt_seconds, now.timed_prompt_seconds)
    if tokens and seconds and tokens / seconds < _FASTEST:
        return tokens / seconds
    # Counted without a time, or perhaps under way: the engine does read prompts, and nobody knows how fast.
    counted = _gained(before.prompt_tokens_total, now.prompt_tokens_total)
    if counted != 0 or _may_read(before) or _may_read(now):
        return None
    return 0.0


def _may_read(readings: Readings) -> bool:
    reading = readings.slots_reading if readings.slots_reading is not None else readings.slots_busy
    return bool(reading)


def _gained(before: float | None, now: float | None) -> float | None:
    return None if before is None or now is None or now < before else now - before
