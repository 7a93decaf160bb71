"""Thousands of hostile exchanges with a real host: each gets an error object, or an end in form."""

import asyncio
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from engine_host.protocol.engines import EngineState, StopEngine
from engine_host.protocol.operations import table as ops
from tests.hostile import asked
from tests.hostile.http.answers import of_control, of_endpoint
from tests.hostile.http.cases import bodies, control, framing, heads
from tests.hostile.http.cases.case import CONTROL, ENDPOINT, Case, Generator, Kinds, Owed, head
from tests.hostile.http.tally import Tally, fuzz
from tests.hostile.rig.host import Look, WatchedHost, watched_host
from tests.hostile.rig.trend import Trend

pytestmark = pytest.mark.fuzz
GENERATORS = (bodies, control, framing, heads)
MIB = 1 << 20
USUAL = 1_500
LOOKS = 24
MOST_GROWTH = 10 * MIB
"""Over the second half, beside the rings of events and lines, which fill up to their bounds."""
LONGEST_WAIT = 5.0
"""Seconds for a good question while all others are hostile, on a machine that does other things too."""
MOST_TAKEN = 120 * MIB
"""Over all: the rings of events, lines and requests, and what large bodies leave until it is given back."""
QUESTION = Case((head("GET", "/v1/models", b"Connection: close"),), Owed.OK)


def _held(look: Look) -> tuple[int, int, int]:
    return look.descriptors, look.threads, look.tasks


def _report(tally: Tally, looks: list[tuple[float, Look]], before: Look, after: Look, log: str) -> None:
    """Print the figures of a run, and fail for what is wrong in it."""
    half = looks[len(looks) // 2 :]
    memory = Trend.of([at for at, _ in half], [float(look.memory - look.kept) for _, look in half])
    waits = sorted(tally.waits)
    print(f"\n{tally.table()}\n")
    print(f"in {looks[-1][0]:.0f} s, seed {asked.fuzz_seed()}; faults: {len(tally.faults)}")
    print(
        f"memory: {before.memory / MIB:.0f} MiB before, {after.memory / MIB:.0f} after; "
        f"events and lines {before.kept / MIB:.0f} and {after.kept / MIB:.0f}; without them it grew by "
        f"{memory.growth / MIB:.1f} ± {memory.error / MIB:.1f} MiB in the second half"
    )
    print(f"a good question meanwhile took {waits[len(waits) // 2]:.3f} s, at most {waits[-1]:.3f} s")
    print(f"descriptors, threads, tasks: {_held(before)} before, {_held(after)} after")
    assert not tally.faults, f"{len(tally.faults)} faults:\n" + "\n".join(tally.faults[:12])
    assert "Traceback" not in log, log[max(0, log.index("Traceback") - 500) :][:3_000]
    assert waits[-1] < LONGEST_WAIT, waits[-10:]
    assert memory.is_flat(MOST_GROWTH), memory
    assert after.memory < before.memory + MOST_TAKEN
    assert after.descriptors <= before.descriptors + 5
    assert after.tasks <= before.tasks + 3


def test_no_request_to_the_endpoint_gets_more_than_an_error_object(tmp_path: Path) -> None:
    assert GENERATORS
    count = asked.fuzz_requests(USUAL)
    tally, looks = Tally(), list[tuple[float, Look]]()
    with watched_host(tmp_path) as host:
        engine = host.start_engine(streams=16, waiting=200)
        before, began = host.look(), time.monotonic()
        for numbers in _parts(count):
            judge = of_endpoint(engine_runs=True)
            asyncio.run(fuzz(host.port, ENDPOINT, numbers, tally, judge, QUESTION))
            assert host.alive, host.log()[-3_000:]
            looks.append((time.monotonic() - began, host.look()))
        assert host.client.call(ops.ENGINE, id=engine.id).state in {EngineState.READY, EngineState.BUSY}
        host.client.call(ops.STOP, StopEngine(), id=engine.id)
        host.wait_for(engine.id, EngineState.UNLOADED)
        without = range(count, count + max(50, count // 50))
        asyncio.run(fuzz(host.port, ENDPOINT, without, tally, of_endpoint(engine_runs=False), QUESTION))
        after = host.look()
        log = host.log()
    print(f"\n{count} hostile exchanges with the endpoint, and {len(without)} without an engine")
    _report(tally, looks, before, after, log)


def test_no_request_to_the_control_socket_gets_more_than_an_error_object(tmp_path: Path) -> None:
    count = asked.fuzz_requests(2 * USUAL) // 4
    tally, looks = Tally(), list[tuple[float, Look]]()
    with watched_host(tmp_path) as host:
        before, began = host.look(), time.monotonic()
        kinds = _with_token(CONTROL, host)
        question = Case((head("GET", "/v1/version", _key(host)),), Owed.OK)
        for numbers in _parts(count):
            asyncio.run(fuzz(str(host.folders.socket), kinds, numbers, tally, of_control, question))
            assert host.alive, host.log()[-3_000:]
            looks.append((time.monotonic() - began, host.look()))
        after = host.look()
        log = host.log()
    print(f"\n{count} hostile exchanges with the control socket")
    _report(tally, looks, before, after, log)


def _parts(count: int) -> list[range]:
    step = max(1, count // LOOKS)
    return [range(first, min(first + step, count)) for first in range(0, count, step)]


def _key(host: WatchedHost) -> bytes:
    return control.KEY.replace(control.TOKEN, host.folders.token.read_bytes().strip())


def _with_token(kinds: Kinds, host: WatchedHost) -> Kinds:
    """The same kinds, with this start's token in its place."""
    token = host.folders.token.read_bytes().strip()

    def told(generator: Generator) -> Generator:
        def make(rng: random.Random) -> Case:
            case = generator(rng)
            return replace(case, parts=tuple(part.replace(control.TOKEN, token) for part in case.parts))

        return make

    return {name: (weight, told(generator)) for name, (weight, generator) in kinds.items()}
