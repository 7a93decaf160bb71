"""Token rates from the engine's counters."""

from engine_host.protocol.engines import Readings

# Below this many seconds a difference of counters says more about the clock than about the engine.
_SHORTEST = 0.05


def with_rates(before: Readings | None, now: Readings) -> Readings:
    """`now` with the prefill and decode rates (tokens/s) since `before`.

    A counter that went back (the engine restarted, a slot was released between two reads) gives no rate.
    """
    if before is None or now.at - before.at < _SHORTEST:
        return now
    seconds = now.at - before.at
    return now.model_copy(
        update={
            "decode_rate": _rate(before.generated_tokens_total, now.generated_tokens_total, seconds),
            "prefill_rate": _rate(before.prompt_tokens_total, now.prompt_tokens_total, seconds),
        }
    )


def _rate(before: int | None, now: int | None, seconds: float) -> float | None:
    if before is None or now is None or now < before:
        return None
    return (now - before) / seconds
