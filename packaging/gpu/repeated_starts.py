"""How long a start takes that was made before, without and with a patch that is to shorten it."""

import statistics
from collections.abc import Callable, Iterable

from judge import Row, Table

from engine_host.protocol.engines import Engine

EARLY = "engine-core-imports-early"
# One more would not fit into a call of ten minutes, with what is compiled for either.
TIMES = 2
PART = "starts"
Once = Callable[[str, bool], Engine]
Stop = Callable[[str, Engine], Iterable[Row]]


def measure(table: Table, once: Once, stop: Stop, *, early: bool) -> None:
    """Make the first start, then by turns those with the patch, where it can be used, and without it.

    The first of each kind may still compile something, so the medians are of the others.
    """
    table.attempt(PART, "first start", lambda: _one(f"{PART}, first", early, [], once, stop))
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for number in range(1, TIMES + 1):
        for patched in (True, False) if early else (False,):
            name = f"{PART}, {'with' if patched else 'without'} {number}"
            found = seconds[patched]
            # Attempted by itself: a lease may end in between, and what was measured stays.
            table.attempt(
                PART,
                name,
                lambda name=name, patched=patched, found=found: _one(name, patched, found, once, stop),
            )
    for patched, found in seconds.items():
        if len(found) > 1:
            told = " · ".join(f"{one:.1f}" for one in found)
            what = f"ready again, {'with' if patched else 'without'} {EARLY}"
            table.add(Row(PART, what, None, f"{told} s, median but for the first {_median(found):.1f} s"))


def _median(found: list[float]) -> float:
    return statistics.median(found[1:])


def _one(name: str, patched: bool, found: list[float], once: Once, stop: Stop) -> Iterable[Row]:
    engine = once(name, patched)
    if engine.verified is not None:
        found.append(engine.verified.ready_after)
    yield from stop(name, engine)
