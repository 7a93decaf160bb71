"""Measures how long the window's event loop is held up while Monitor draws an hour and Chat streams.

`python packaging/bench/smoothness.py [--seconds N] [--trace FILE] [--profile] [--json]`. The real window over
the fake host of the tests, which lives in the same loop and so costs it more than a host of its own would.
The samples come from a recorded trace, or from one made up for this: 8 GPUs, an hour at twice a second.
Beside the wall's clock stands the loop's own: what other programs took of the processor is not in it.
"""

import argparse
import asyncio
import cProfile
import json
import math
import os
import pstats
import sys
import tempfile
import time
from pathlib import Path

GPUS, HOUR, STEP = 8, 3600.0, 0.5
TICK = 0.004
"""Seconds between two ticks; what a tick is late by is what the loop was held up."""
LIMIT = 0.016
TOKENS_A_SECOND = 200
SERIES = ("utilization", "power", "temperature", "memory.used", "clock", "memory.temperature")


def made_up(path: Path) -> None:
    """Write a trace of an hour, as a busy machine would."""
    from engine_host.core.gpu_trace.format import TraceWriter, head_of
    from engine_host.protocol.host import Gpu

    def card(number: int, second: float) -> Gpu:
        load = 0.5 + 0.5 * math.sin(second / 40 + number)
        return Gpu(
            index=number,
            uuid="",
            name="made up for the bench",
            memory_total=80 << 30,
            memory_used=int((20 + 50 * load) * (1 << 30)),
            utilization=round(load, 2),
            power=round(100 + 500 * load, 1),
            temperature=int(40 + 40 * load),
            clock=int(600 + 1200 * load),
            memory_temperature=int(45 + 35 * load),
        )

    first = [card(number, 0.0) for number in range(GPUS)]
    writer = TraceWriter(head_of(first, time.time(), "bench", None, None), processes=False)
    with path.open("wb") as target:
        target.write(writer.first())
        for place in range(int(HOUR / STEP)):
            second = place * STEP
            target.write(writer.line(second, [card(number, second) for number in range(GPUS)]))


async def measure(trace_file: Path, seconds: float, home: Path) -> list[tuple[float, float]]:
    """Return for each tick by how much it was late: by the wall's clock, and by the loop's own."""
    from PySide6.QtCore import Qt, QTimer

    from engine_host.core.gpu_trace.format import Trace
    from engine_host.protocol.engines import EngineState
    from engine_host.protocol.events import TelemetryEvent
    from engine_host.protocol.telemetry import RECORDED_PREFIX, Sample, Series, TelemetryPage
    from engine_host.telemetry.sampler import gpu_values
    from engine_host.telemetry.series import describe
    from sndr_gui.models.monitor.graphs import GPUS as SET
    from sndr_gui.models.monitor.graphs import SETS
    from sndr_gui.views.monitor.page import MonitorView
    from tests.views import conftest
    from tests.views.samples import host as samples

    trace = Trace(trace_file)
    moments = [gpu_values(trace.gpus()) for _ in trace.moments()]
    trace.close()
    now = time.time()
    at = tuple(now - STEP * (len(moments) - place) for place in range(len(moments)))
    names = [name for name in moments[0] if name.split(".", 2)[2] in SERIES]
    lines = []
    for name in names:
        kind = describe(RECORDED_PREFIX + name)
        values = tuple(moment.get(name) for moment in moments)
        lines.append(
            Series(
                name=RECORDED_PREFIX + name,
                unit=kind.unit,
                title=kind.title,
                source=kind.source,
                at=at,
                values=values,
            )
        )
    late: list[tuple[float, float]] = []
    async with conftest.opened(home) as stage:
        stage.state.set_engine(samples.engine(EngineState.READY))
        stage.window.go("monitor")
        page = stage.window.page
        assert isinstance(page, MonitorView)
        page.graphs.sets.buttons[SETS.index(SET)].click()
        await stage.until(lambda: page.model.loaded and page.graphs.cards()[0].graph is not None)
        page.model.range_seconds = int(HOUR)
        page.model._take(TelemetryPage(seq=0, step=STEP, series=tuple(lines)))
        piece = {"choices": [{"index": 0, "delta": {"content": "word "}}]}
        data = f"data: {json.dumps(piece)}\n\n"
        # Five at a time: each wait of the loop takes longer than it was asked for.
        together = [*[data] * 5, 4 / TOKENS_A_SECOND]
        stage.host.chat = together * int((seconds + 5) * TOKENS_A_SECOND / 5)
        await stage.until(lambda: stage.pages.chat.available)
        stage.pages.chat.send("Write on and on.")
        await asyncio.sleep(1.0)
        before = [time.perf_counter(), time.thread_time()]

        def tick() -> None:
            wall, own = time.perf_counter(), time.thread_time()
            late.append((max(0.0, wall - before[0] - TICK), max(0.0, own - before[1])))
            before[:] = [wall, own]

        timer = QTimer()
        timer.setTimerType(Qt.TimerType.PreciseTimer)
        timer.timeout.connect(tick)
        timer.start(round(TICK * 1000))
        began, place = time.monotonic(), 0
        while time.monotonic() - began < seconds:
            values = {RECORDED_PREFIX + name: moments[place][name] for name in names}
            stage.host.publish(TelemetryEvent(at=time.time(), sample=Sample(at=time.time(), values=values)))
            place = (place + 1) % len(moments)
            await asyncio.sleep(STEP)
        timer.stop()
        assert len(page.model._series) == len(names), "the graphs were read anew"
        drawn = sum(len(card.graph._lines) for card in page.graphs.cards() if card.graph is not None)
        print(f"{drawn} lines of {len(moments):,} values each", file=sys.stderr)
        streamed = len(stage.pages.chat.messages[-1].text.split())
        stage.pages.chat.stop()
        await asyncio.sleep(0.2)
        print(f"streamed {streamed / (time.monotonic() - began + 1):.0f} tokens a second", file=sys.stderr)
    return late


def quantile(values: list[float], share: float) -> float:
    """Return the value below which that share of them lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main() -> int:
    """Measure and print; 0 when the 99th percentile of the loop's own time is within the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--profile", action="store_true", help="Say where the time went.")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    import qasync
    from PySide6.QtWidgets import QApplication

    with tempfile.TemporaryDirectory(prefix="sndr-b-") as home:
        os.environ["SNDR_HOME"] = home
        from sndr_gui.kit import theme
        from sndr_gui.kit.look.choices import Look, ThemeChoice

        trace = options.trace or Path(home) / "made-up.trace"
        if options.trace is None:
            made_up(trace)
        app = QApplication.instance() or QApplication([])
        assert isinstance(app, QApplication)
        theme.setup(app, Look(ThemeChoice.LIGHT))
        loop = qasync.QEventLoop(app)
        asyncio.set_event_loop(loop)
        profile = cProfile.Profile() if options.profile else None
        if profile is not None:
            profile.enable()
        late = loop.run_until_complete(measure(trace, options.seconds, Path(home)))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
        if profile is not None:
            profile.disable()
            pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(25)
    wall, own = ([pair[which] for pair in late] for which in (0, 1))
    result = {
        "name": "event loop held up",
        "ticks": len(late),
        "p50": quantile(own, 0.5),
        "p99": quantile(own, 0.99),
        "most": max(own),
        "p99_of_the_wall": quantile(wall, 0.99),
        "limit": LIMIT,
        "load": os.getloadavg()[0],
    }
    if options.json:
        print(json.dumps(result))
    else:
        milliseconds = {name: 1000 * float(str(result[name])) for name in ("p50", "p99", "most")}
        print(
            "event loop held up, by its own clock: "
            + ", ".join(f"{name} {value:.1f} ms" for name, value in milliseconds.items())
            + f"; by the wall's p99 {quantile(wall, 0.99) * 1000:.1f} ms"
            + f" (limit {LIMIT * 1000:.0f} ms; {len(late)} ticks; load {os.getloadavg()[0]:.1f})"
        )
    sys.stdout.flush()
    return int(quantile(own, 0.99) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
