"""A damaged file of runs: told with the command that saves, refused for new runs, and saved."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine_host.bench.kept import runs as kept_runs
from engine_host.bench.kept import sweeps as kept_sweeps
from engine_host.bench.kept.repair import repair
from engine_host.core.errors import HostError
from engine_host.protocol.bench.lab import LabEngine, LabMachine, LabRun, Sample, WorkloadName
from engine_host.protocol.bench.sweeps import LabSweep, SweepKind
from engine_host.protocol.errors import Reason

NAMES = [f"202601{day:02}-000000-quick-aaaa" for day in range(1, 29)]


def made(name: str, **more: Any) -> LabRun:
    text = os.urandom(4000).hex()
    sample = Sample(part="p", number=0, warm=False, salt="s", started=0.0, total=1.0, text=text)
    return LabRun(
        id=name,
        workload=WorkloadName.QUICK,
        started_at=1.0,
        seed=1,
        engine=LabEngine(address="http://x", model="m"),
        machine=LabMachine(program="1", python="3", system="s"),
        samples=(sample,),
        **more,
    )


def filled(folder: Path) -> Path:
    for name in NAMES:
        kept_runs.save(folder, made(name, baseline=name == NAMES[0], complete=True))
    return folder / "runs.db"


def damaged_at(path: Path, at: int, size: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xa5" * size)


def test_what_can_be_read_is_saved_and_the_damaged_file_stays(tmp_path: Path) -> None:
    path = filled(tmp_path)
    damaged_at(path, path.stat().st_size // 2, 12_288)
    before = path.read_bytes()
    done = repair(tmp_path)
    assert done.runs >= len(NAMES) // 2
    assert Path(done.aside).read_bytes() == before
    runs = kept_runs.page(tmp_path).runs
    assert len(runs) == done.runs
    whole = 0
    for run in runs:
        try:
            whole += bool(kept_runs.find(tmp_path, run.id).samples)
        except HostError:
            continue
    assert whole >= len(NAMES) // 2
    assert next(run for run in runs if run.id == NAMES[0]).baseline
    kept_runs.save(tmp_path, made("20260301-000000-quick-bbbb"))
    assert sorted(one.name for one in tmp_path.iterdir()) == [Path(done.aside).name, "runs.db"]


@pytest.mark.parametrize("how", ["no data base", "cut off", "a table gone"])
def test_a_damaged_file_names_the_command_and_refuses_a_run_before_it_begins(
    tmp_path: Path, how: str
) -> None:
    path = filled(tmp_path)
    if how == "no data base":
        path.write_bytes(b"nothing of the kind" * 500)
    elif how == "cut off":
        os.truncate(path, 8192)
    else:
        sql = sqlite3.connect(path)
        sql.execute("PRAGMA foreign_keys=OFF")
        sql.execute("DROP TABLE run")
        sql.close()
    sweep = LabSweep(
        id="20260101-000000-kv-bbbb",
        kind=SweepKind.KV,
        engine="e",
        started_at=1.0,
        command="c",
        values=("a",),
    )
    works: list[Callable[[], object]] = [
        lambda: kept_runs.page(tmp_path),
        lambda: kept_runs.can_keep(tmp_path, made("20260301-000000-quick-bbbb")),
    ]
    if how != "a table gone":
        works.append(lambda: kept_sweeps.can_keep(tmp_path, sweep))
    for work in works:
        with pytest.raises(HostError) as raised:
            work()
        assert raised.value.problem.cause == "The file is damaged."
        assert raised.value.problem.fix is not None
        assert raised.value.problem.fix.command == "sndr bench repair"
    assert repair(tmp_path).runs >= 0
    kept_runs.save(tmp_path, made("20260301-000000-quick-bbbb"))
    kept_sweeps.can_keep(tmp_path, sweep)
    assert kept_sweeps.page(tmp_path).sweeps == ()
    assert kept_runs.find(tmp_path, "latest").id == "20260301-000000-quick-bbbb"


def test_a_whole_file_and_none_are_left_alone(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="Nothing was measured"):
        repair(tmp_path)
    kept_runs.can_keep(tmp_path, made("20260301-000000-quick-bbbb"))
    assert kept_runs.page(tmp_path).runs == ()
    kept_runs.save(tmp_path, made("20260301-000000-quick-bbbb"))
    with pytest.raises(HostError, match="is whole") as raised:
        repair(tmp_path)
    assert raised.value.reason is Reason.CONFLICT
