"""A run that is cancelled: what is kept of it, and what it says of that; the server is a FAKE one."""

import asyncio
from pathlib import Path

from engine_host.bench.kept import runs as kept_runs
from engine_host.bench.lab.running import CANCELLED
from engine_host.bench.lab.workloads import Part, Workload
from engine_host.protocol.bench.lab import LabRun, WorkloadName
from tests.unit.asynchronous import run
from tests.unit.bench.lab.test_running import SMALL, WORDS, delta, measured, well


async def cut_after(answers: int, folder: Path, workload: Workload = SMALL) -> tuple[LabRun, int]:
    """Cut a run in the middle of the answer after these; the run, and the connections left open."""
    cut = asyncio.Event()
    begun = 0

    async def answer(body: dict[str, object], writer: asyncio.StreamWriter) -> None:
        nonlocal begun
        begun += 1
        if begun <= answers:
            await well(body, writer)
            return
        # It goes on until the other side leaves.
        cut.set()
        while not writer.is_closing():
            writer.write(delta("word "))
            await writer.drain()
            await asyncio.sleep(0.001)

    found, _, left = await measured(answer, folder, workload=workload, cut=cut)
    return found, left


def test_cut_short_it_keeps_what_it_has_and_closes_every_connection(tmp_path: Path) -> None:
    found, left = run(cut_after(4, tmp_path))
    assert (found.complete, found.ended_by, left) == (False, CANCELLED, 0)
    assert found.parts[0].done == 2
    assert found.cut is not None
    # Of a server that has no counters nobody knows when it is idle.
    assert (found.cut.whole, found.cut.cut, found.cut.idle) == ((), ("pair",), None)
    kept = kept_runs.find(kept_runs.folder_of(tmp_path), found.id)
    assert (kept.complete, kept.cut) == (False, found.cut)


def test_cut_short_it_says_what_is_whole_and_what_was_not_asked(tmp_path: Path) -> None:
    parts = [Part(name, name, max_tokens=len(WORDS), warm=0, measured=1) for name in ("a", "b", "c")]
    found, _ = run(cut_after(1, tmp_path, Workload(WorkloadName.QUICK, tuple(parts))))
    assert found.cut is not None
    assert found.cut.whole == ("a",)
    assert found.cut.missing == ("c",)


def test_cut_short_in_its_warm_round_it_keeps_nothing(tmp_path: Path) -> None:
    found, left = run(cut_after(1, tmp_path))
    assert (found.complete, found.ended_by, found.samples, left) == (False, CANCELLED, (), 0)
    assert kept_runs.page(kept_runs.folder_of(tmp_path)).runs == ()
