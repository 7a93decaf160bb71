"""Measures the host's processor time for a request, and for a piece of a stream, behind a FAKE fast engine.

`python packaging/bench/host_cost.py [--beside FOLDER] [--streams N …] [--rounds N] [--json]`. Host, endpoint,
sockets and log are the real ones; the engine is the FAKE one of `tests/hostile`, which writes twenty lines to
its log for a request, as llama.cpp does. With `--beside` the host of another checkout is measured in turns
with this one. A request is one of two pieces; what a longer one takes more is what its pieces take.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from engine_host.gateway.directory import Target
from engine_host.gateway.upstream import Upstream
from tests.hostile.rig.host import ROOT, WatchedHost

_SHORT = 2
_PAUSE = 0.02
"""Seconds between two pieces of a stream: slower than what is put together into lumps."""


def spent(pid: int) -> float:
    """Return the seconds of processor time that all threads of a process took until now."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            total += int((task / "schedstat").read_text(encoding="ascii").split()[0])
    return total / 1e9


@contextlib.contextmanager
def hosts(roots: list[Path]) -> Iterator[list[WatchedHost]]:
    """A host of each checkout, with the FAKE engine behind it."""
    with tempfile.TemporaryDirectory(prefix="sndr-h-") as folder, contextlib.ExitStack() as ends:
        running = []
        for number, root in enumerate(roots):
            home = Path(folder) / str(number)
            home.mkdir()
            os.environ["SNDR_HOME"] = str(home / "home")
            os.environ["PYTHONPATH"] = str(root)
            host = WatchedHost(home, root)
            ends.callback(host.end)
            host.start_engine(streams=64, waiting=2_000)
            running.append(host)
        yield running


async def _ask(target: Target, path: str, pieces: int, pause: float) -> None:
    body = {"messages": [{"role": "user", "content": "x"}], "prompt": "x", "stream": True}
    data = json.dumps({**body, "fake": {"tokens": pieces, "pause": pause}}).encode()
    async with await Upstream.open(target, "POST", path, data) as upstream:
        await upstream.head()
        told = await upstream.rest()
    if b"[DONE]" not in told:
        raise RuntimeError(f"status {upstream.status}: {told[:300]!r}")


async def cost(host: WatchedHost, path: str, streams: int, pieces: int, pause: float) -> float:
    """Return the seconds that the host took for so many streams at once, and for all that follows them."""
    target = Target("fake", "fake", 1, 0, 0.0, url=f"http://127.0.0.1:{host.port}")
    before = spent(host.process.pid)
    await asyncio.gather(*(_ask(target, path, pieces, pause) for _ in range(streams)))
    # Lines of the log and events come up to a tenth of a second later.
    await asyncio.sleep(0.3)
    return spent(host.process.pid) - before


def main(words: list[str]) -> int:
    """Measure in turns and print the medians, with the lowest and the highest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", type=Path, help="another checkout")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--path", default="/v1/chat/completions")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(words)
    roots = [ROOT] if asked.beside is None else [asked.beside.resolve(), ROOT]
    names = ["here"] if asked.beside is None else ["beside", "here"]
    result = []
    with hosts(roots) as running, asyncio.Runner() as loop:
        for streams in asked.streams:
            # As many requests and pieces each time, so that the clock of the system sees enough of them.
            pieces = 100
            per_request: list[list[float]] = [[] for _ in roots]
            per_piece: list[list[float]] = [[] for _ in roots]
            for turn in range(-1, asked.rounds):
                order = list(range(len(roots)))
                for place in order if turn % 2 else reversed(order):
                    host = running[place]
                    again = max(1, 4 // streams)
                    short = [loop.run(cost(host, asked.path, streams, _SHORT, 0)) for _ in range(again)]
                    long = loop.run(cost(host, asked.path, streams, pieces, _PAUSE))
                    if turn >= 0:
                        request = statistics.mean(short) / streams
                        per_request[place].append(request)
                        per_piece[place].append((long / streams - request) / (pieces - _SHORT))
            for place, name in enumerate(names):
                row = {
                    "host": name,
                    "streams": streams,
                    "request_ms": [round(one * 1e3, 3) for one in sorted(per_request[place])],
                    "piece_us": [round(one * 1e6, 1) for one in sorted(per_piece[place])],
                }
                result.append(row)
                told = f"{name}, {streams} at once: a request {_spread(per_request[place], 1e3)} ms, "
                print(f"{told}a piece {_spread(per_piece[place], 1e6)} us", file=sys.stderr, flush=True)
            if len(roots) == 2:
                for what, both in (("request", per_request), ("piece", per_piece)):
                    ratios = [here / beside for beside, here in zip(*both, strict=True)]
                    print(f"  {what}: here / beside {_spread(ratios, 1)}", file=sys.stderr, flush=True)
    if asked.json:
        print(json.dumps(result))
    return 0


def _spread(values: list[float], scale: float) -> str:
    low, middle, high = min(values) * scale, statistics.median(values) * scale, max(values) * scale
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
