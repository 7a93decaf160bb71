"""The end of what an engine was asked: when its own counters show no request any more."""

import asyncio
import time
from collections.abc import Iterator

import httpx

from engine_host.core.outside import answers
from engine_host.protocol.launch.plans import EngineKind

_COUNTERS = {
    EngineKind.VLLM: ("vllm:num_requests_running", "vllm:num_requests_waiting"),
    EngineKind.LLAMA_CPP: ("llamacpp:requests_processing", "llamacpp:requests_deferred"),
}
LONGEST = 10.0
"""Seconds for which an engine is watched: others may ask it for ever."""
_EACH = 0.01
_MOST_BYTES = 2 << 20


async def requests_at_work(client: httpx.AsyncClient, engine: str, seconds: float = LONGEST) -> int | None:
    """Return the requests that an engine runs or holds back; None where it does not say."""
    try:
        answer = await answers.fetch(client, "/metrics", most=_MOST_BYTES, seconds=seconds)
        found = list(_values(answer.text, engine)) if answer.is_success else []
    except (httpx.HTTPError, ValueError):
        return None
    return int(sum(found)) if found else None


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


def _values(text: str, engine: str) -> Iterator[float]:
    """Yield the counters of a text. Raises ValueError for one that is no number."""
    names = _COUNTERS[EngineKind(engine)]
    for line in text.splitlines():
        # With labels or without; `num_requests_waiting_by_reason` counts the same ones again.
        if line.partition("{")[0].partition(" ")[0] in names:
            yield float(line.rpartition(" ")[2])
