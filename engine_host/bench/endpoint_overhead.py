"""Measure the endpoint's overhead: the same streams against an engine itself and through the endpoint.

Both sides are measured in interleaved rounds of one run, because the speed of a machine drifts by more than
the difference looked for. `python -m engine_host.bench.endpoint_overhead` is a process of its own: in the
host's it would take the time that it measures.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from engine_host.bench.goals import Goal, Judged, at_least, at_most
from engine_host.bench.random_model import QWEN3_06B, write_random_model
from engine_host.core.keys.in_header import key_in_header
from engine_host.gateway.directory import Target
from engine_host.gateway.meter import Meter
from engine_host.gateway.upstream import Upstream, UpstreamLostError

GOAL = 0.98
"""The share of the bare engine's speed that the endpoint has to reach."""
MOST_ADDED = 0.003
"""Seconds that the endpoint may add to the time to first token (TTFT), in the median."""
_LEAST_TOKENS = 16
# Answers of 16 tokens end before a fast engine has all streams at work: then their beginning is measured.
_ROUND_SECONDS = 1.0
_SIDES = ("bare engine", "endpoint")


@dataclass(frozen=True)
class Side:
    """Decode tokens a second of all streams together, and the seconds to the first content."""

    rate: float
    low: float
    high: float
    ttft: float


@dataclass(frozen=True)
class OverheadRow:
    """One number of streams; `ratio` is the median over the rounds of endpoint / bare, with its extremes.

    `goal` is the verdict over it. `tokens` of each stream; `cpu_per_token` is the host's processor time in
    seconds, where its process is known.
    """

    streams: int
    bare: Side
    endpoint: Side
    ratio: float
    ratio_low: float
    ratio_high: float
    tokens: int
    goal: Judged
    cpu_per_token: float | None = None


@dataclass(frozen=True)
class AddedTtft:
    """Seconds between a question and its first token: medians of both sides, and of the pairs' differences.

    `low` and `high` are the quartiles of the differences, `goal` the verdict over them; one question at a
    time, in turns.
    """

    bare: float
    endpoint: float
    added: float
    low: float
    high: float
    pairs: int
    goal: Judged


@dataclass(frozen=True)
class OverheadReport:
    """The comparison, with its conditions: the engine's name, rounds of each side."""

    model: str
    ttft: AddedTtft
    rows: tuple[OverheadRow, ...]
    repeats: int

    @property
    def reached(self) -> bool:
        """True if every goal is reached beyond doubt."""
        goals = [self.ttft.goal, *(row.goal for row in self.rows)]
        return all(goal.verdict is Goal.REACHED for goal in goals)


@dataclass(frozen=True)
class _Round:
    rate: float
    ttft: float


async def run(
    bare: str,
    endpoint: str,
    model: str,
    *,
    streams: Sequence[int],
    tokens: int,
    repeats: int,
    pairs: int,
    key: str | None = None,
    bare_model: str | None = None,
    endpoint_pid: int | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> OverheadReport:
    """Measure both sides in turns; `bare` and `endpoint` are each a URL or the path of a Unix socket.

    `tokens` are those of a stream where up to eight run; where more do, each has as many as a second takes,
    so that a round of a slow engine is no longer. `key` is for the endpoint; `bare_model` is the model's name
    on the bare side where it is another there; `tell` hears each step in a sentence.
    Raises UpstreamLostError when a side cannot be reached and RuntimeError when it does not answer with
    all tokens.
    """
    sides = _Sides(_target(bare, bare_model or model), _target(endpoint, model, key))
    ttft = await _added_ttft(sides, pairs, tell)
    rows = []
    for count in streams:
        warm = [
            await _round(side, count, min(tokens, _LEAST_TOKENS), salt=f"warm {count}") for side in sides.both
        ]
        each = tokens_of(count, tokens, warm[0].rate)
        tell(f"{_streams(count)} at once, {each} tokens each, {repeats} rounds of each side")
        rounds: tuple[list[_Round], list[_Round]] = ([], [])
        spent = []
        for repeat in range(repeats):
            for place in _order(repeat):
                before = _processor_time(endpoint_pid)
                salt = f"{time.monotonic_ns()} {repeat} {place}"
                rounds[place].append(await _round(sides.both[place], count, each, salt=salt))
                after = _processor_time(endpoint_pid)
                if place and before is not None and after is not None:
                    spent.append((after - before) / (count * each))
                tell(f"  round {repeat + 1}, {_SIDES[place]}: {rounds[place][-1].rate:.1f} tokens/s")
        ratios = [through.rate / bare_.rate for bare_, through in zip(*rounds, strict=True)]
        rows.append(
            OverheadRow(
                count,
                _side(rounds[0]),
                _side(rounds[1]),
                statistics.median(ratios),
                min(ratios),
                max(ratios),
                each,
                at_least(ratios, GOAL),
                statistics.median(spent) if spent else None,
            )
        )
    return OverheadReport(model, ttft, tuple(rows), repeats)


def tokens_of(streams: int, tokens: int, rate: float) -> int:
    """Return the tokens of each of several streams, by the engine's tokens a second with as many."""
    fewest = max(_LEAST_TOKENS, tokens * 8 // streams, int(rate * _ROUND_SECONDS) // streams)
    return min(tokens, fewest)


@dataclass(frozen=True)
class _Sides:
    bare: Target
    endpoint: Target

    @property
    def both(self) -> tuple[Target, Target]:
        return self.bare, self.endpoint


def _order(turn: int) -> tuple[int, int]:
    """Each side goes first as often as the other, so that drift favours neither."""
    return (0, 1) if turn % 2 == 0 else (1, 0)


async def _added_ttft(sides: _Sides, pairs: int, tell: Callable[[str], None]) -> AddedTtft:
    """Ask one short question at a time, in turns."""
    tell(f"time to first token, {pairs} pairs of questions")
    waits: tuple[list[float], list[float]] = ([], [])
    for turn in range(-2, pairs):
        for place in _order(turn):
            sent, first, _ = await _stream(sides.both[place], 2, f"{time.monotonic_ns()} {turn}")
            if turn >= 0:
                waits[place].append(first - sent)
    differences = [through - bare for bare, through in zip(*waits, strict=True)]
    low, middle, high = statistics.quantiles(differences, n=4)
    medians = [statistics.median(side) for side in waits]
    goal = at_most(differences, MOST_ADDED)
    return AddedTtft(medians[0], medians[1], middle, low, high, pairs, goal)


def _processor_time(pid: int | None) -> float | None:
    """Seconds of processor time a process has used; None when it is not known."""
    if pid is None:
        return None
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _target(address: str, model: str, key: str | None = None) -> Target:
    if address.startswith("http"):
        return Target(model, model, 1, 0, 0.0, url=address, key=key)
    return Target(model, model, 1, 0, 0.0, socket=address)


def _side(rounds: Sequence[_Round]) -> Side:
    rates = [one.rate for one in rounds]
    ttft = statistics.median(one.ttft for one in rounds)
    return Side(statistics.median(rates), min(rates), max(rates), ttft)


async def _round(target: Target, streams: int, tokens: int, *, salt: str) -> _Round:
    """Streams at once; tokens a second from the first content of any to the end of all."""
    parts = await asyncio.gather(*(_stream(target, tokens, f"{place} {salt}") for place in range(streams)))
    first = min(part[1] for part in parts)
    last = max(part[2] for part in parts)
    ttft = statistics.median(part[1] - part[0] for part in parts)
    return _Round(streams * (tokens - 1) / (last - first), ttft)


async def _stream(target: Target, tokens: int, prompt: str) -> tuple[float, float, float]:
    """One stream: when it was asked for, when its first content came, when it ended."""
    body = {
        "model": target.name,
        "prompt": prompt,
        "max_tokens": tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        "ignore_eos": True,
        "cache_prompt": False,
    }
    sent_at = time.perf_counter()
    first = 0.0
    meter = Meter()
    async with await Upstream.open(target, "POST", "/v1/completions", json.dumps(body).encode()) as upstream:
        await upstream.head()
        if upstream.status != 200:
            raise RuntimeError(f"status {upstream.status}: {(await upstream.rest())[:300]!r}")
        while (piece := await upstream.read()) is not None:
            if meter.feed(piece):
                first = time.perf_counter()
    ended = time.perf_counter()
    figures = meter.figures()
    if figures.generated_tokens != tokens:
        raise RuntimeError(f"asked for {tokens} tokens, got {figures.generated_tokens}")
    return sent_at, first or ended, ended


def told(report: OverheadReport) -> list[str]:
    """The report as lines for people."""
    one = report.ttft
    lines = [
        f"{report.model}; medians over {report.repeats} rounds a side in turns (lowest to highest), "
        f"TTFT over {one.pairs} pairs (quartiles)",
        f"TTFT: engine {one.bare * 1000:.1f} ms, endpoint {one.endpoint * 1000:.1f} ms, added "
        f"{one.added * 1000:+.2f} ms ({one.low * 1000:+.2f} to {one.high * 1000:+.2f}), "
        + _interval(one.goal, 1000, "+.2f", " ms")
        + f"at most {MOST_ADDED * 1000:g} ms: {one.goal.told('pairs')}",
    ]
    for row in report.rows:
        bare, through = row.bare, row.endpoint
        spent = "" if row.cpu_per_token is None else f"{row.cpu_per_token * 1e6:.0f} us of the host a token, "
        lines.append(
            f"{_streams(row.streams)} of {row.tokens} tokens: engine {bare.rate:.1f} tokens/s "
            f"({bare.low:.1f} to {bare.high:.1f}), "
            f"endpoint {through.rate:.1f} ({through.low:.1f} to {through.high:.1f}), "
            f"ratio {row.ratio:.3f} ({row.ratio_low:.3f} to {row.ratio_high:.3f}), "
            f"{spent}{_interval(row.goal, 1, '.3f', '')}at least {GOAL}: {row.goal.told('rounds')}"
        )
    return lines


def _streams(count: int) -> str:
    return f"{count} stream" if count == 1 else f"{count} streams"


def _interval(goal: Judged, scale: float, form: str, unit: str) -> str:
    """The bounds of the middle, as far as they are known; nothing with too few rounds."""
    if goal.low is None or goal.high is None:
        return ""
    return f"98 %: {goal.low * scale:{form}} to {goal.high * scale:{form}}{unit}, "


def main(words: Sequence[str]) -> int:
    """Measure and print: 0 where every goal is reached, 1 where one is not, 2 where nothing was measured.

    The endpoint's key is read from SNDR_API_KEY. With --write FILE a random model is written instead.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("--bare", metavar="SOCKET or URL")
    parser.add_argument("--bare-model", help="the model's name there, where it is another")
    parser.add_argument("--endpoint", metavar="URL")
    parser.add_argument("--model")
    parser.add_argument("--pid", type=int, help="of the endpoint's process")
    for name in ("tokens", "repeats", "pairs"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--streams", type=int, nargs="+")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(words)
    if asked.write is not None:
        write_random_model(asked.write, QWEN3_06B, quantization="Q4_0")
        return 0
    given = os.environ.get("SNDR_API_KEY")
    key = key_in_header(given) if given else None
    if given and key is None:
        parser.error("SNDR_API_KEY holds no key: it is one line of letters, digits and signs")
    measured = run(
        asked.bare,
        asked.endpoint,
        asked.model,
        streams=asked.streams,
        tokens=asked.tokens,
        repeats=asked.repeats,
        pairs=asked.pairs,
        key=key,
        bare_model=asked.bare_model,
        endpoint_pid=asked.pid,
        tell=_tell,
    )
    try:
        report = asyncio.run(measured)
    except (UpstreamLostError, RuntimeError) as error:
        _tell(str(error))
        return 2
    whole = {**asdict(report), "reached": report.reached}
    print(json.dumps(whole) if asked.json else "\n".join(told(report)))
    return 0 if report.reached else 1


def _tell(text: str) -> None:
    """Say what is done now on stderr: the result on stdout stays for programs."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
