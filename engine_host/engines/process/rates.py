"""The rate at which prompts were read between two readings of an engine."""

from engine_host.protocol.engines import Readings

# Tokens a second; a time that says more is none.
_FASTEST = 1e12


def prefill_rate(before: Readings | None, now: Readings) -> float | None:
    """Prompt tokens a second since `before`; None where it was not measured.

    It is the engine's own timing of the prompts that it counted in between: an engine counts a prompt when
    it was read (vLLM its time when the answer ends), so the interval says nothing of how long that took.
    While a prompt may be under way and none was counted, the rate is not known.
    """
    if before is None:
        return None
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
