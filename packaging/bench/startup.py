"""Measures what a person waits for: the window's first picture, its values, and the first token after Start.

`python packaging/bench/startup.py [--repeats N] [--json]`. Each repeat has folders of its own, so it is a
first start each time; the files are in the system's cache after the first, which is left out.
"""

import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from engine_host.cli.start.host import find_or_start
from engine_host.client.chat_stream import ask
from engine_host.core.paths import Folders
from engine_host.protocol.engines import EngineState
from engine_host.protocol.launch.plans import LaunchRequest, StartRequest
from engine_host.protocol.models import ModelOrigin
from engine_host.protocol.operations import table as ops
from tests.e2e.desktop import Desktop, desktop

T = TypeVar("T")


BARE = Path(__file__).with_name("bare_window.py")
# The first picture against a window of Qt's alone, in the same run.
RATIO = 2.5
WINDOW = (sys.executable, "-m", "sndr_gui", "--say-ready")
LONGEST = 120.0
"""Seconds after which what did not come is waited for no longer."""


def bare_picture(screen: Desktop) -> float:
    """Seconds to the first painting of a window of Qt's alone."""
    done = subprocess.run(
        [sys.executable, str(BARE)],
        env=screen.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=LONGEST,
    )
    return float(json.loads(done.stdout)["seconds"])


def first_picture(screen: Desktop, longest: float = LONGEST) -> tuple[float, float]:
    """Seconds from the start of the window's process to its first painting, and to the values of its host.

    Raises RuntimeError where one of both does not come.
    """
    with tempfile.TemporaryDirectory(prefix="sndr-b-") as home:
        process = subprocess.Popen(
            WINDOW,
            env={**screen.environment, "SNDR_HOME": home},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        try:
            began = time.monotonic()
            seen: dict[str, float] = {}
            for line in lines(process.stdout.fileno(), longest):
                said = json.loads(line)
                seen[said["event"]] = float(said["seconds"])
                if len(seen) == 2:
                    return seen["painted"], seen["useful"]
            missing = " and ".join(event for event in ("painted", "useful") if event not in seen)
            late = time.monotonic() - began >= longest
            ended = f"{longest:g} s are over" if late else "it ended"
            raise RuntimeError(
                f"The window did not say that it was {missing}: {ended}. See what it says itself: "
                "`python -m sndr_gui --say-ready`."
            )
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


def lines(pipe: int, longest: float) -> Iterator[bytes]:
    """Yield the lines of a pipe until it ends, or until so many seconds have passed."""
    end = time.monotonic() + longest
    rest = b""
    while select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
        if not (chunk := os.read(pipe, 1 << 16)):
            return
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole


def first_token() -> tuple[float, float]:
    """Seconds from Start to `ready`, and to the first token that a client of the endpoint gets."""
    with tempfile.TemporaryDirectory(prefix="sndr-b-") as home:
        os.environ["SNDR_HOME"] = home
        with find_or_start(Folders.resolve()) as hold:
            client = hold.client
            models = client.call(ops.MODELS).models
            demo = next(model for model in models if model.origin is ModelOrigin.BUNDLED)
            began = time.monotonic()
            plan = client.call(ops.PLAN, LaunchRequest(model=demo.id))
            engine = client.call(ops.START, StartRequest(plan=plan.id))
            while engine.state not in {EngineState.READY, EngineState.BUSY}:
                if engine.state is EngineState.FAILED:
                    raise RuntimeError(engine.problem.message if engine.problem else "the start failed")
                if time.monotonic() - began > LONGEST:
                    raise RuntimeError(
                        f"The demo model was not ready within {LONGEST:g} s; it was {engine.state.value}."
                    )
                time.sleep(0.01)
                engine = client.call(ops.ENGINE, id=engine.id)
            ready = time.monotonic() - began
            url = client.call(ops.HOST).endpoint.url
            assert url is not None
            answer = ask(url, engine.name, "Hello!", max_tokens=16)
            assert answer.ttft is not None
            return ready, ready + answer.ttft


def told(name: str, seconds: list[float], limit: float | None) -> dict[str, object]:
    """One measurement with its spread."""
    return {
        "name": name,
        "median": round(statistics.median(seconds), 3),
        "low": round(min(seconds), 3),
        "high": round(max(seconds), 3),
        "repeats": len(seconds),
        "limit": limit,
    }


def repeated(name: str, repeats: int, measure: Callable[[], T]) -> list[T]:
    """Measure so often, and once before that does not count; say on stderr which comes next."""
    found = []
    for number in range(repeats + 1):
        which = f"{number} of {repeats}" if number else "once to warm the system's cache"
        print(f"starting the {name}, {which}", file=sys.stderr, flush=True)
        found.append(measure())
    return found[1:]


def main() -> int:
    """Measure and print; 0 when every median is within its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--window-only", action="store_true", help="start no model")
    options = parser.parse_args()
    os.environ.setdefault("SNDR_CACHE", str(Folders.resolve().cache))
    with desktop() as screen:
        # In turns, so that a machine that slows down does so for both.
        both = repeated("window", options.repeats, lambda: (bare_picture(screen), *first_picture(screen)))
    starts = [] if options.window_only else repeated("demo model", options.repeats, first_token)
    results = [
        told("bare window of Qt painted", [bare for bare, _, _ in both], None),
        told("window painted", [painted for _, painted, _ in both], 0.5),
        told("of a bare window, times", [painted / bare for bare, painted, _ in both], RATIO),
        told("values of the host shown", [useful for _, _, useful in both], 1.0),
    ]
    if starts:
        results.append(told("demo model ready after Start", [ready for ready, _ in starts], 3.0))
        results.append(told("first token after Start", [token for _, token in starts], 3.0))
    if options.json:
        print(json.dumps(results))
    else:
        for result in results:
            limit = f" limit {result['limit']};" if result["limit"] is not None else ""
            print(
                f"{result['name']:<30} {result['median']:.3f}"
                f"  ({result['low']:.3f} to {result['high']:.3f}, {result['repeats']} repeats;"
                f"{limit} load {os.getloadavg()[0]:.1f})"
            )
    limited = [result for result in results if result["limit"] is not None]
    return int(any(float(str(result["median"])) > float(str(result["limit"])) for result in limited))


if __name__ == "__main__":
    sys.exit(main())
