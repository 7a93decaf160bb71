"""Thousands of hostile exchanges with a real host: each gets an error object, or an end in form."""

import asyncio
import random
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine_host.protocol.engines import EngineState, StopEngine
from engine_host.protocol.operations import table as ops
from tests.hostile import asked
from tests.hostile.http.cases import bodies, framing, heads
from tests.hostile.http.cases.case import Case, Owed, choose, head
from tests.hostile.http.exchange import Outcome, carry_out
from tests.hostile.rig.host import Look, WatchedHost, watched_host
from tests.hostile.rig.trend import Trend

pytestmark = pytest.mark.fuzz
GENERATORS = (bodies, framing, heads)
MIB = 1 << 20
AT_ONCE = 24
USUAL = 1_500
LOOKS = 24
MOST_GROWTH = 10 * MIB
"""Over the second half, in which nothing fills up any more."""
LONGEST_WAIT = 5.0
"""Seconds for a good question while all others are hostile, on a machine that does other things too."""
MOST_TAKEN = 120 * MIB
"""Over all: the rings of events, lines and requests, and what large bodies leave until it is given back."""


@dataclass
class Tally:
    """What came of every exchange."""

    by_kind: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    faults: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    done: bool = False

    def add(self, number: int, kind: str, case: Case, outcome: Outcome) -> None:
        """Count one; what is wrong is kept with what shows it."""
        self.by_kind[kind][outcome.result] += 1
        if outcome.fault:
            got = f"    got {outcome.received[:300]!r}"
            self.faults.append(f"{number} {kind}: {outcome.fault}\n    sent {case.shown()}\n{got}")

    def table(self) -> str:
        """Return one line for each kind of exchange."""
        results = sorted({result for counts in self.by_kind.values() for result in counts})
        lines = [f"{'kind':<18}{'all':>7}" + "".join(f"{result:>14}" for result in results)]
        for kind, counts in (*sorted(self.by_kind.items()), ("all", sum(self.by_kind.values(), Counter()))):
            figures = "".join(f"{counts[result] or '':>14}" for result in results)
            lines.append(f"{kind:<18}{counts.total():>7}{figures}")
        return "\n".join(lines)


async def fuzz(host: WatchedHost, numbers: range, tally: Tally, *, engine_runs: bool) -> None:
    """Carry out the exchanges with these numbers; each follows from the seed and its number alone."""
    left = iter(numbers)

    async def client() -> None:
        for number in left:
            kind, case = choose(random.Random(f"{asked.fuzz_seed()}/{number}"))
            outcome = await carry_out(host.port, case, engine_runs=engine_runs)
            tally.add(number, kind, case, outcome)

    asking = asyncio.create_task(ask_again_and_again(host.port, tally))
    await asyncio.gather(*(client() for _ in range(AT_ONCE)))
    tally.done = True
    await asking
    tally.done = False


async def ask_again_and_again(port: int, tally: Tally) -> None:
    """Measure how long a good question takes meanwhile: nothing may hold up everybody."""
    question = Case((head("GET", "/v1/models", b"Connection: close"),), Owed.OK)
    while not tally.done:
        began = time.monotonic()
        outcome = await carry_out(port, question, engine_runs=True)
        tally.waits.append(time.monotonic() - began)
        tally.add(-1, "asked meanwhile", question, outcome)
        await asyncio.sleep(0.05)


def test_no_request_gets_more_than_an_error_object(tmp_path: Path) -> None:
    assert GENERATORS
    count = asked.fuzz_requests(USUAL)
    tally, looks = Tally(), list[tuple[float, Look]]()
    with watched_host(tmp_path) as host:
        engine = host.start_engine(streams=16, waiting=200)
        before, began = host.look(), time.monotonic()
        step = max(1, count // LOOKS)
        for first in range(0, count, step):
            asyncio.run(fuzz(host, range(first, min(first + step, count)), tally, engine_runs=True))
            assert host.alive, host.log()[-3_000:]
            looks.append((time.monotonic() - began, host.look()))
        took = time.monotonic() - began
        assert host.client.call(ops.ENGINE, id=engine.id).state in {EngineState.READY, EngineState.BUSY}
        host.client.call(ops.STOP, StopEngine(), id=engine.id)
        host.wait_for(engine.id, EngineState.UNLOADED)
        without = range(count, count + max(50, count // 50))
        asyncio.run(fuzz(host, without, tally, engine_runs=False))
        after = host.look()
        version = host.client.call(ops.VERSION)
        log = host.log()
    half = looks[len(looks) // 2 :]
    memory = Trend.of([at for at, _ in half], [float(look.memory) for _, look in half])
    waits = sorted(tally.waits)
    print(f"\n{tally.table()}\n")
    print(
        f"{count} exchanges in {took:.0f} s, seed {asked.fuzz_seed()}, {len(without)} more without an engine"
    )
    print(f"faults: {len(tally.faults)}; lines of host.log: {log.count(chr(10))}")
    print(
        f"memory: {before.memory / MIB:.0f} MiB before, {after.memory / MIB:.0f} after; "
        f"in the second half it grew by {memory.growth / MIB:.1f} ± {memory.error / MIB:.1f} MiB"
    )
    print(f"a good question meanwhile took {waits[len(waits) // 2]:.3f} s, at most {waits[-1]:.3f} s")
    print(f"descriptors, threads, tasks: {_held(before)} before, {_held(after)} after")
    assert not tally.faults, f"{len(tally.faults)} faults:\n" + "\n".join(tally.faults[:12])
    assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:3_000]
    assert version.program
    assert memory.is_flat(MOST_GROWTH), memory
    assert waits[-1] < LONGEST_WAIT, waits[-10:]
    assert after.memory < before.memory + MOST_TAKEN
    assert after.descriptors <= before.descriptors + 5
    assert after.tasks <= before.tasks + 3


def _held(look: Look) -> tuple[int, int, int]:
    return look.descriptors, look.threads, look.tasks
