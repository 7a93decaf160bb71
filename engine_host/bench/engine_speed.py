"""Measure the speed of a running engine: load over its own HTTP interface, the same for every engine."""

import asyncio
import hashlib
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import httpx

from engine_host.core.errors import HostError
from engine_host.core.sse import DONE, async_messages
from engine_host.protocol.engines import SpeedRow
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import ServerChoice

STREAMS = (1, 4, 8)
REPEATS = 3
DECODE_TOKENS = 64
# A prefill long enough to fill a batch of 512, the size that engines are tuned for.
PREFILL_WORDS = 480
_REQUEST_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class StreamSpeed:
    """One number of parallel streams; rates in tokens/s of all streams together, TTFT in seconds."""

    streams: int
    decode_rate: float
    low: float
    high: float
    ttft: float

    def row(self, server: ServerChoice, version: str) -> SpeedRow:
        """The same for the window."""
        return SpeedRow(
            server=server,
            server_version=version,
            streams=self.streams,
            decode_rate=self.decode_rate,
            low=self.low,
            high=self.high,
            ttft=self.ttft,
        )


@dataclass(frozen=True, slots=True)
class BenchResult:
    """A measurement with its conditions; medians, with the extremes of the repeats as spread."""

    prefill_rate: float
    prefill_low: float
    prefill_high: float
    prefill_tokens: int
    decode: tuple[StreamSpeed, ...]
    decode_tokens: int
    repeats: int


@dataclass(frozen=True, slots=True)
class _Run:
    started: float
    first: float
    ended: float
    prompt_tokens: int
    tokens: int
    # What the engine itself says it took, in seconds; 0 where it does not say.
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0

    @property
    def ttft(self) -> float:
        return max(self.first - self.started, self.prefill_seconds)


async def measure(
    client: httpx.AsyncClient,
    model: str,
    *,
    streams: Sequence[int] = STREAMS,
    repeats: int = REPEATS,
    decode_tokens: int = DECODE_TOKENS,
    prefill_words: int = PREFILL_WORDS,
    say: Callable[[str], None] = lambda _text: None,
) -> BenchResult:
    """Measures prefill with one long prompt, and decode with 1 to n parallel streams of a short one.

    Every prompt begins with a number of its own, so that no prefix cache can flatter the figure. The engine
    needs as many slots as `max(streams)`; fewer show as waiting, which is what a user would meet too.
    Raises `HostError(engine_not_ready)` when a request fails or gives no tokens.
    """
    salt = time.time_ns()
    # The first request pays for memory that is touched for the first time.
    await _run(client, model, _prompt(salt, 16), 8)
    prefills: list[float] = []
    prefill_tokens = 0
    for number in range(repeats):
        say(f"prefill, {number + 1} of {repeats}")
        run = await _run(client, model, _prompt(salt + 1_000 + number, prefill_words), 1)
        prefills.append(run.prompt_tokens / run.ttft)
        prefill_tokens = run.prompt_tokens
    rows: list[StreamSpeed] = []
    for count in streams:
        rates: list[float] = []
        waits: list[float] = []
        for number in range(repeats):
            say(f"{count} {'stream' if count == 1 else 'streams'}, {number + 1} of {repeats}")
            first = salt + 10_000 * count + 100 * number
            runs = await asyncio.gather(
                *(_run(client, model, _prompt(first + one, 16), decode_tokens) for one in range(count))
            )
            # From the first token of all to the last: what all streams got together, stalls included. On a
            # machine so busy that tokens reach this process in one lump, the engine's own clock counts.
            seconds = max(
                max(run.ended for run in runs) - min(run.first for run in runs),
                max(run.decode_seconds for run in runs),
            )
            rates.append(sum(run.tokens - 1 for run in runs) / max(seconds, 1e-6))
            waits.append(statistics.median(run.ttft for run in runs))
        rows.append(
            StreamSpeed(
                streams=count,
                decode_rate=round(statistics.median(rates), 2),
                low=round(min(rates), 2),
                high=round(max(rates), 2),
                ttft=round(statistics.median(waits), 4),
            )
        )
    return BenchResult(
        prefill_rate=round(statistics.median(prefills), 2),
        prefill_low=round(min(prefills), 2),
        prefill_high=round(max(prefills), 2),
        prefill_tokens=prefill_tokens,
        decode=tuple(rows),
        decode_tokens=decode_tokens,
        repeats=repeats,
    )


def _prompt(salt: int, words: int) -> str:
    # Hashed: numbers that follow one another begin with the same tokens.
    return (
        hashlib.sha256(str(salt).encode()).hexdigest()[:12]
        + " "
        + " ".join(f"word{(salt + n) % 97}" for n in range(max(1, words // 4)))
    )


async def _run(client: httpx.AsyncClient, model: str, prompt: str, tokens: int) -> _Run:
    body = {
        "model": model,
        "prompt": prompt,
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    # A connection of its own: a kept one may be closed by the engine in the moment it is used again.
    headers = {"connection": "close"}
    started = time.perf_counter()
    first: float | None = None
    usage: dict[str, int] = {}
    timings: dict[str, float] = {}
    try:
        async with client.stream(
            "POST", "/v1/completions", json=body, headers=headers, timeout=_REQUEST_SECONDS
        ) as answer:
            if not answer.is_success:
                text = (await answer.aread()).decode("utf-8", "replace")
                raise _failed(
                    tr("It answered {status_code}.", status_code=answer.status_code), {"answer": text[:500]}
                )
            async for message in async_messages(answer.aiter_bytes()):
                if not message.data or message.data == DONE:
                    continue
                now = time.perf_counter()
                part = json.loads(message.data)
                if "error" in part:
                    raise _failed(tr("It broke off."), {"error": part["error"]})
                if first is None and part.get("choices"):
                    first = now
                usage = part.get("usage") or usage
                timings = part.get("timings") or timings
    except (httpx.HTTPError, ValueError) as error:
        raise _failed(tr("It did not answer: {error}.", error=error), {"error": repr(error)}) from error
    ended = time.perf_counter()
    generated = int(usage.get("completion_tokens", 0))
    if first is None or generated < 1:
        raise _failed(tr("It gave no tokens."), {"usage": usage})
    return _Run(
        started,
        first,
        ended,
        int(usage.get("prompt_tokens", 0)),
        generated,
        float(timings.get("prompt_ms", 0.0)) / 1000,
        float(timings.get("predicted_ms", 0.0)) / 1000,
    )


def _failed(detail: str, evidence: dict[str, object]) -> HostError:
    return HostError(
        Reason.ENGINE_NOT_READY,
        tr("The engine could not be measured. {detail}", detail=detail),
        fix="Read its log.",
        evidence=evidence,
    )
