"""Runs in the data base: found by name, files of earlier versions moved in, damaged ones named."""

import os
import re
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from engine_host.bench.kept import database
from engine_host.bench.kept import runs as kept_runs
from engine_host.bench.kept import sweeps as kept_sweeps
from engine_host.bench.kept.under_way import measuring
from engine_host.bench.lab.comparing import compared
from engine_host.client.bench_reports.figures import about, state_text
from engine_host.client.bench_reports.regression import judged
from engine_host.client.bench_reports.sweep import state_text as sweep_state
from engine_host.core.errors import HostError
from engine_host.protocol.bench.lab import LabEngine, LabMachine, LabRun, Measuring, Sample, WorkloadName
from engine_host.protocol.bench.sweeps import LabSweep, SweepKind
from engine_host.protocol.errors import Reason


def made(name: str, **more: Any) -> LabRun:
    plain: dict[str, Any] = {
        "id": name,
        "workload": WorkloadName.QUICK,
        "started_at": 1.0,
        "seed": 1,
        "engine": LabEngine(address="http://x", model="m"),
        "machine": LabMachine(program="1", python="3", system="s"),
        "samples": (Sample(part="p", number=0, warm=False, salt="s", started=0.0, total=1.0, text="words"),),
    }
    return LabRun(**{**plain, **more})


def kept(folder: Path, name: str) -> LabRun:
    run = made(name)
    kept_runs.save(folder, run)
    return run


def test_runs_are_found_by_name_by_an_end_and_as_the_latest(tmp_path: Path) -> None:
    old = made("20260101-000000-quick-aaaa")
    odd = old.samples[0].model_copy(update={"text": "\ud800"})
    kept_runs.save(tmp_path, old.model_copy(update={"samples": (odd,)}))
    new = kept(tmp_path, "20260102-000000-quick-bbbb")
    assert kept_runs.find(tmp_path, "latest").id == new.id
    assert kept_runs.find(tmp_path, "aaaa").id == old.id
    assert kept_runs.find(tmp_path, "20260101").samples[0].text == "?"
    assert [run.id for run in kept_runs.page(tmp_path).runs] == [new.id, old.id]
    assert kept_runs.page(tmp_path).runs[0].samples == ()
    with pytest.raises(HostError, match="2 runs begin or end"):
        kept_runs.find(tmp_path, "2026")


@pytest.mark.parametrize("wanted", ["nobody", "../x", "", "*", "\0", "/etc/passwd"])
def test_a_name_of_none_is_refused_and_leads_nowhere(tmp_path: Path, wanted: str) -> None:
    with pytest.raises(HostError, match="Nothing was measured") as raised:
        kept_runs.find(tmp_path / "bench", wanted)
    assert raised.value.reason is Reason.NOT_FOUND
    kept(tmp_path / "bench", "20260101-000000-quick-aaaa")
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(HostError, match="There is no run"):
        kept_runs.find(tmp_path / "bench", wanted)


@pytest.mark.parametrize("content", ["", "{}", "[" * 10_000, '{"id": "another"}', "\0" * 64])
def test_a_damaged_file_is_named_and_hides_no_other(tmp_path: Path, content: str) -> None:
    whole = kept(tmp_path, "20260101-000000-quick-aaaa")
    (tmp_path / "20260103-000000-quick-cccc.json").write_text(content)
    page = kept_runs.page(tmp_path)
    assert [run.id for run in page.runs] == [whole.id]
    assert page.unreadable == ("20260103-000000-quick-cccc.json",)
    with pytest.raises(HostError, match="cannot be read"):
        kept_runs.find(tmp_path, "cccc")


def old_file(folder: Path, run: LabRun) -> Path:
    """A run as earlier versions wrote it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run.id}.json"
    path.write_text(run.model_dump_json())
    return path


def test_files_of_earlier_versions_move_in_with_all_that_is_in_them(tmp_path: Path) -> None:
    old = made("20260101-000000-quick-aaaa", baseline=True, complete=True)
    sweep = LabSweep(
        id="20260101-000000-kv-bbbb",
        kind=SweepKind.KV,
        engine="e",
        started_at=1.0,
        command="c",
        values=("f16", "q8_0"),
    )
    path = old_file(tmp_path, old)
    other = tmp_path / "sweeps" / f"{sweep.id}.json"
    other.parent.mkdir()
    other.write_text(sweep.model_dump_json())
    assert kept_runs.find(tmp_path, "aaaa") == old
    assert kept_runs.page(tmp_path).runs == (old.model_copy(update={"samples": ()}),)
    assert kept_sweeps.page(tmp_path).sweeps == (sweep,)
    assert kept_sweeps.report(tmp_path, "latest").sweep == sweep
    assert not path.exists()
    assert not other.exists()
    kept_runs.remove(tmp_path, "aaaa")
    assert kept_runs.page(tmp_path).runs == ()


def test_a_file_that_was_moved_in_before_a_kill_takes_nothing_back(tmp_path: Path) -> None:
    run = made("20260101-000000-quick-aaaa", complete=True)
    kept_runs.save(tmp_path, run)
    kept_runs.mark(tmp_path, "aaaa", on=True)
    path = old_file(tmp_path, run)
    assert kept_runs.find(tmp_path, "aaaa").baseline
    assert not path.exists()


def test_a_file_that_may_not_be_removed_is_listed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made("20260101-000000-quick-aaaa")
    old_file(tmp_path, run)

    def refused(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, os.strerror(13), str(path))

    monkeypatch.setattr(Path, "unlink", refused)
    for _ in range(2):
        page = kept_runs.page(tmp_path)
        assert [one.id for one in page.runs] == [run.id]
        assert page.unreadable == ()


def test_where_too_much_is_kept_the_oldest_go_but_no_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = os.urandom(100_000).hex()
    names = [f"2026010{day}-000000-quick-aaaa" for day in range(1, 7)]
    monkeypatch.setattr(database, "LARGEST", 400_000)
    for number, name in enumerate(names):
        sample = made(name).samples[0].model_copy(update={"text": text})
        run = made(name, started_at=float(number), complete=True, samples=(sample,), baseline=number == 0)
        kept_runs.save(tmp_path, run)
        assert kept_runs.find(tmp_path, name).samples[0].text == text
    left = [run.id for run in kept_runs.page(tmp_path).runs]
    assert left == [names[5], names[4], names[0]]


def test_a_new_run_names_those_that_went_for_it_and_takes_no_more_room_than_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = os.urandom(100_000).hex()
    names = [f"2026010{day}-000000-quick-aaaa" for day in range(1, 8)]
    for number, name in enumerate(names[:6]):
        sample = made(name).samples[0].model_copy(update={"text": text})
        old_file(tmp_path, made(name, started_at=float(number), complete=True, samples=(sample,)))
    monkeypatch.setattr(database, "LARGEST", 100_000)
    assert [run.id for run in kept_runs.page(tmp_path).runs] == names[5::-1]
    # A little smaller than the one whose place it takes, whatever their packing comes to.
    sample = made(names[6]).samples[0].model_copy(update={"text": text[:180_000]})
    new = made(names[6], started_at=9.0, samples=(sample,))
    new = kept_runs.save(tmp_path, new)
    assert new.replaced == (names[0],)
    assert kept_runs.save(tmp_path, new).replaced == (names[0],)
    assert kept_runs.find(tmp_path, "latest").replaced == (names[0],)
    assert any(names[0] in line and "went" in line for line in about(new))
    assert [run.id for run in kept_runs.page(tmp_path).runs] == names[:0:-1]


def test_several_processes_keep_their_runs_at_once(tmp_path: Path) -> None:
    runs = [made(f"2026010{day}-000000-quick-aaaa") for day in range(1, 9)]
    threads = [threading.Thread(target=kept_runs.save, args=(tmp_path, run)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {run.id for run in kept_runs.page(tmp_path).runs} == {run.id for run in runs}


@pytest.mark.parametrize("body", [b"", b"nothing packed", None])
def test_a_run_with_damaged_samples_is_listed_and_said_to_be_damaged(
    tmp_path: Path, body: bytes | None
) -> None:
    kept(tmp_path, "20260101-000000-quick-aaaa")
    whole = kept(tmp_path, "20260102-000000-quick-bbbb")
    with sqlite3.connect(tmp_path / "runs.db") as sql:
        if body is None:
            sql.execute("UPDATE run SET about = '{' WHERE id LIKE '%aaaa'")
        else:
            sql.execute("UPDATE samples SET body = ? WHERE run LIKE '%aaaa'", (body,))
    sql.close()
    with pytest.raises(HostError, match="cannot be read"):
        kept_runs.find(tmp_path, "aaaa")
    assert kept_runs.find(tmp_path, "bbbb") == whole
    page = kept_runs.page(tmp_path)
    assert page.unreadable == (("20260101-000000-quick-aaaa",) if body is None else ())
    kept_runs.remove(tmp_path, "aaaa")
    assert [run.id for run in kept_runs.page(tmp_path).runs] == [whole.id]


def test_who_only_reads_makes_no_file(tmp_path: Path) -> None:
    assert kept_runs.page(tmp_path / "bench").runs == ()
    assert kept_sweeps.page(tmp_path / "bench").sweeps == ()
    assert not (tmp_path / "bench").exists()


def test_a_run_runs_while_its_process_does_and_is_partial_once_that_was_killed(tmp_path: Path) -> None:
    name = "20260101-000000-quick-aaaa"
    kept_runs.save(tmp_path, made(name, measuring=measuring()))
    run = kept_runs.find(tmp_path, name)
    assert [state_text(one) for one in (run, *kept_runs.page(tmp_path).runs)] == ["running", "running"]
    assert "RUNNING" in about(run)[-1]
    other = made("20260102-000000-quick-bbbb", complete=True)
    assert "A is still being measured" in [doubt.text for doubt in compared(run, other).doubts]
    assert judged(compared(other, run), 3.0).refused == "the run is still being measured"
    for refused in (
        lambda: kept_runs.mark(tmp_path, name, on=True),
        lambda: kept_runs.remove(tmp_path, name),
        lambda: kept_runs.find_cut(tmp_path, name, run.engine, run.workload_hash),
    ):
        with pytest.raises(HostError) as raised:
            refused()
        assert re.search("is running|measured now", f"{raised.value} {raised.value.problem.cause}")
    # The number of a process that was killed belongs to another one now, or to none.
    for gone in (Measuring(pid=os.getpid(), born="boot/1"), Measuring(pid=2**22 + 1, born="boot/1")):
        kept_runs.save(tmp_path, made(name, measuring=gone))
        assert state_text(kept_runs.find(tmp_path, name)) == "partial"
    kept_runs.remove(tmp_path, name)


def test_a_sweep_runs_while_its_host_does(tmp_path: Path) -> None:
    name = "20260101-000000-kv-aaaa"
    plain: dict[str, Any] = {
        "id": name,
        "kind": SweepKind.KV,
        "engine": "e",
        "started_at": 1.0,
        "command": "",
    }
    for at, told in ((measuring(), "running"), (Measuring(pid=os.getpid(), born="boot/1"), "partial")):
        kept_sweeps.save(tmp_path, LabSweep(**plain, values=("f16",), measuring=at))
        assert sweep_state(kept_sweeps.page(tmp_path).sweeps[0]) == told
