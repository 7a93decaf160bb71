"""Measure the endpoint's overhead: the same streams against the bare server and through the endpoint.

Both sides are measured in interleaved rounds of one run, because the speed of a machine drifts by more than
the difference looked for. `python -m engine_host.bench.endpoint_overhead --model X.gguf` starts both sides.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from engine_host.gateway.directory import Target
from engine_host.gateway.meter import Meter
from engine_host.gateway.upstream import Upstream, UpstreamLostError, fetch

GOAL = 0.98
"""The share of the bare server's speed that the endpoint has to reach."""
TOKENS, REPEATS = 96, 3
"""Tokens of a stream, and rounds of each side: some four minutes in all on two cores."""
_SIDES = ("bare server", "endpoint")


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

    `cpu_per_token` is the endpoint's processor time in seconds, where its process is known.
    """

    streams: int
    bare: Side
    endpoint: Side
    ratio: float
    ratio_low: float
    ratio_high: float
    cpu_per_token: float | None = None

    @property
    def reached(self) -> bool:
        """True if the endpoint is as fast as the goal asks."""
        return self.ratio >= GOAL


@dataclass(frozen=True)
class OverheadReport:
    """The comparison, with its conditions: tokens of one stream, rounds of each side."""

    rows: tuple[OverheadRow, ...]
    tokens: int
    repeats: int


@dataclass(frozen=True)
class _Round:
    rate: float
    ttft: float


async def run(
    bare: str,
    endpoint: str,
    streams: Sequence[int] = (1, 4, 8),
    tokens: int = TOKENS,
    repeats: int = REPEATS,
    endpoint_pid: int | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> OverheadReport:
    """Measure both sides in turns; `bare` and `endpoint` are each a URL or the path of a Unix socket.

    `tell` hears each step in a sentence.
    Raises UpstreamLostError when a side cannot be reached and RuntimeError when it does not answer with
    all tokens.
    """
    sides = (_target(bare), _target(endpoint))
    rows = []
    for count in streams:
        tell(f"{count} streams at once, {repeats} rounds of each side")
        for side in sides:
            await _round(side, count, min(tokens, 16), salt=f"warm {count}")
        rounds: tuple[list[_Round], list[_Round]] = ([], [])
        before = _processor_time(endpoint_pid)
        for repeat in range(repeats):
            # Each side goes first as often as the other, so that drift favours neither.
            for place in (0, 1) if repeat % 2 == 0 else (1, 0):
                salt = f"{time.monotonic_ns()} {repeat} {place}"
                rounds[place].append(await _round(sides[place], count, tokens, salt=salt))
                tell(f"  round {repeat + 1}, {_SIDES[place]}: {rounds[place][-1].rate:.1f} tokens/s")
        after = _processor_time(endpoint_pid)
        spent = (
            (after - before) / (count * tokens * repeats)
            if after is not None and before is not None
            else None
        )
        ratios = [through.rate / bare_.rate for bare_, through in zip(*rounds, strict=True)]
        middle = statistics.median(ratios)
        sides_measured = (_side(rounds[0]), _side(rounds[1]))
        rows.append(OverheadRow(count, *sides_measured, middle, min(ratios), max(ratios), spent))
    return OverheadReport(tuple(rows), tokens, repeats)


def _processor_time(pid: int | None) -> float | None:
    """Seconds of processor time a process has used; None when it is not known."""
    if pid is None:
        return None
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _target(address: str) -> Target:
    if address.startswith("http"):
        return Target("bench", "bench", 1, 0, 0.0, url=address)
    return Target("bench", "bench", 1, 0, 0.0, socket=address)


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
    body = {"prompt": prompt, "max_tokens": tokens, "stream": True, "ignore_eos": True, "cache_prompt": False}
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


def table(report: OverheadReport) -> str:
    """The report as text for people."""
    lines = [f"{report.tokens} tokens a stream, {report.repeats} rounds a side; tokens/s, median (low-high)"]
    for row in report.rows:
        bare, through = row.bare, row.endpoint
        lines.append(
            f"{row.streams} streams: bare {bare.rate:.1f} ({bare.low:.1f}-{bare.high:.1f}), "
            f"endpoint {through.rate:.1f} ({through.low:.1f}-{through.high:.1f}), "
            f"ratio {row.ratio:.3f} ({row.ratio_low:.3f}-{row.ratio_high:.3f}), "
            f"TTFT {bare.ttft * 1000:.1f} and {through.ttft * 1000:.1f} ms, "
            + (f"{row.cpu_per_token * 1e6:.0f} us of CPU a token, " if row.cpu_per_token is not None else "")
            + f"{'reached' if row.reached else 'NOT reached'}"
        )
    return "\n".join(lines)


async def _serve_endpoint(socket: str, slots: int) -> None:
    """The other process: an endpoint in front of one server; prints its port and runs until it is ended."""
    import uvicorn

    from engine_host.gateway import Gateway, bind_endpoint

    class One:
        """A directory with one engine."""

        def targets(self) -> Sequence[Target]:
            """The engine under test."""
            return (Target("bench", "bench", slots, 1024, time.time(), socket=socket),)

        def starting(self) -> Sequence[str]:
            """Nothing."""
            return ()

    bound = bind_endpoint("127.0.0.1", 0)
    config = uvicorn.Config(
        Gateway(One(), lambda event: None).app,
        http="httptools",
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
    )
    print(bound.port, flush=True)
    await uvicorn.Server(config).serve(sockets=[bound.socket])


async def _wait_ready(target: Target, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            status, _ = await fetch(target, "GET", "/health")
        except UpstreamLostError:
            status = 0
        if status == 200:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"the server was not ready after {seconds:.0f} s")
        await asyncio.sleep(0.2)


async def _measure(options: argparse.Namespace) -> OverheadReport:
    """Start what was not given, measure, and end what was started."""
    from engine_host.engines.llamacpp.command import LlamaCppStart
    from engine_host.engines.llamacpp.servers import ServerProber, own_command, prebuilt_command
    from engine_host.engines.llamacpp.temporary_server import temporary_server

    command = own_command(options.server.absolute()) if options.server else prebuilt_command()
    if command is None:
        raise SystemExit("The prebuilt server is not installed; name one with --server.")
    sizes = {"context": options.tokens + 128, "streams": max(options.streams), "threads": options.threads}
    start = LlamaCppStart(str(options.model), "bench", sizes)
    _tell(f"starting llama-server with {options.model.name}")
    async with temporary_server(await ServerProber().probe(command), start) as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "engine_host.bench.endpoint_overhead",
            "--serve",
            server.socket,
            "--streams",
            *map(str, options.streams),
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            assert process.stdout is not None
            port = int(await process.stdout.readline())
            url = f"http://127.0.0.1:{port}"
            await _wait_ready(_target(url), 20)
            return await run(
                server.socket, url, options.streams, options.tokens, options.repeats, process.pid, _tell
            )
        finally:
            process.terminate()
            await process.wait()


def _tell(text: str) -> None:
    """Say what is done now on stderr: the result on stdout stays for programs."""
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 when the goal is not reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="GGUF file; without it a random 0.6 B model is made")
    parser.add_argument("--server", type=Path, help="a llama-server program; without it the prebuilt one")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--threads", type=int, help="of the engine; without it what a start takes")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", metavar="SOCKET", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        asyncio.run(_serve_endpoint(options.serve, max(options.streams)))
        return 0
    if options.model is None:
        return _with_random_model(options)
    report = asyncio.run(_measure(options))
    print(json.dumps(asdict(report)) if options.json else table(report))
    return 0 if all(row.reached for row in report.rows) else 1


def _with_random_model(options: argparse.Namespace) -> int:
    import tempfile

    from engine_host.bench.random_model import QWEN3_06B, write_random_model

    _tell("writing a random model of 0.6 B parameters")
    with tempfile.TemporaryDirectory() as folder:
        options.model = write_random_model(Path(folder) / "random.gguf", QWEN3_06B, quantization="Q4_0")
        report = asyncio.run(_measure(options))
    print(json.dumps(asdict(report)) if options.json else table(report))
    return 0 if all(row.reached for row in report.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
