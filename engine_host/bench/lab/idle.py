"""The end of what an engine was asked: when its own counters show no request any more."""

import asyncio
import time

import httpx

from engine_host.core.outside import answers
from engine_host.engines.metrics import MOST_BYTES, Metrics
from engine_host.protocol.launch.plans import EngineKind

_COUNTERS = {
    EngineKind.VLLM: ("vllm:", "num_requests_running", "num_requests_waiting"),
    EngineKind.LLAMA_CPP: ("llamacpp:", "requests_processing", "requests_deferred"),
}
LONGEST = 10.0
"""Seconds for which an engine is watched: others may ask it for ever."""
_EACH = 0.01


async def requests_at_work(client: httpx.AsyncClient, engine: str, seconds: float = LONGEST) -> int | None:
    """Return the requests that an engine runs or holds back; None where it does not say."""
    prefix, *names = _COUNTERS[EngineKind(engine)]
    try:
        answer = await answers.fetch(client, "/metrics", most=MOST_BYTES, seconds=seconds)
        counted = Metrics(answer.text, prefix) if answer.is_success else None
    except (httpx.HTTPError, ValueError):
        return None
    found = [] if counted is None else [counted.total(name) for name in names]
    known = [value for value in found if value is not None]
    return int(sum(known)) if known else None


async def idle_after(client: httpx.AsyncClient, engine: str, since: float) -> tuple[int | None, float] | None:
    """Watch until nothing is at work; the requests that were at the end, and the seconds `since` a moment.

    The moment is one of `time.perf_counter`. The requests are None of one that did not answer in that time,
    and all is None where the engine does not say.
    """
    if engine not in _COUNTERS:
        return None
    while True:
        left = since + LONGEST - time.perf_counter()
        running = await requests_at_work(client, engine, max(left, _EACH))
        passed = time.perf_counter() - since
        if running is None and passed < LONGEST:
            return None
        if running == 0 or passed >= LONGEST:
            return running, passed
        await asyncio.sleep(_EACH)
