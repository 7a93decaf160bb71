"""The newest figures of an engine, the same on every page that shows them."""

from __future__ import annotations

from collections.abc import Callable

from engine_host.protocol.engines import Engine, Readings
from sndr_gui.host.state import HostState


def decode_now(state: HostState, engine: Engine) -> float | None:
    """Return tokens a second of all its streams, over the time they worked between its last two readings."""
    return _newest(state, engine, "decode_rate", lambda told: told.decode_rate)


def memory_now(state: HostState, engine: Engine) -> float | None:
    """Return the main memory of the engine's processes in bytes, with the files that they map."""
    return _newest(state, engine, "memory", lambda told: told.memory)


def kv_tokens_now(state: HostState, engine: Engine) -> float | None:
    """Return the tokens in its KV cache."""
    return _newest(state, engine, "kv.tokens", lambda told: told.kv_tokens)


def _newest(
    state: HostState, engine: Engine, series: str, of_readings: Callable[[Readings], float | None]
) -> float | None:
    """Return the newest sample, or what came with a state of the engine where that is newer."""
    told = engine.readings
    sampled = state.measured(f"engine.{engine.id}.{series}", told.at if told else 0.0)
    return sampled if sampled is not None or told is None else of_readings(told)
