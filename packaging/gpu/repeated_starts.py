"""How long a start takes that was made before, without and with a patch that is to shorten it."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from judge import Row, Table
from next_turns import shape_of

from engine_host.protocol.engines import Engine

EARLY = "engine-core-imports-early"
# One more would not fit into a call of ten minutes, with what is compiled for either.
TIMES = 2
PART = "starts"
Once = Callable[[str, bool], Engine]
Stop = Callable[[str, Engine], Iterable[Row]]
Kinds = tuple[bool, ...]


def chosen(shapes: Sequence[str] | None, folder: Path, *, cpu: bool) -> tuple[str, dict[str, int], Kinds]:
    """The model, its settings, and the kinds of starts: with the patch, without it.

    A shape compiles for minutes, so only what is on by default fits into a call beside its first start.
    """
    if not shapes:
        return "sndr-demo", {"context": 4096, "streams": 8}, (False,) if cpu else (True, False)
    model = str(shape_of(shapes[0], folder / shapes[0]))
    return model, {"context": 32768, "streams": 16}, (not cpu,)


def measure(table: Table, once: Once, stop: Stop, *, kinds: Kinds) -> None:
    """Make the first start, then by turns those of each kind: with the patch, without it.

    The first of each kind may still compile something, so the medians are of the others.
    """
    table.attempt(PART, "first start", lambda: _one(f"{PART}, first", kinds[0], [], once, stop))
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for number in range(1, TIMES + 1):
        for patched in kinds:
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
