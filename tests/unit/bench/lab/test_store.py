"""Runs as files: found by name, and damaged ones named."""

from pathlib import Path

import pytest

from engine_host.bench.lab import store
from engine_host.core.errors import HostError
from engine_host.protocol.bench.lab import LabEngine, LabMachine, LabRun, Sample, WorkloadName
from engine_host.protocol.errors import Reason


def kept(folder: Path, name: str) -> LabRun:
    run = LabRun(
        id=name,
        workload=WorkloadName.QUICK,
        started_at=1.0,
        seed=1,
        engine=LabEngine(address="http://x", model="m"),
        machine=LabMachine(program="1", python="3", system="s"),
        samples=(Sample(part="p", number=0, warm=False, salt="s", started=0.0, total=1.0, text="\ud800"),),
    )
    store.save(folder, run)
    return run


def test_runs_are_found_by_name_by_an_end_and_as_the_latest(tmp_path: Path) -> None:
    old = kept(tmp_path, "20260101-000000-quick-aaaa")
    new = kept(tmp_path, "20260102-000000-quick-bbbb")
    assert store.find(tmp_path, "latest").id == new.id
    assert store.find(tmp_path, "aaaa").id == old.id
    assert store.find(tmp_path, "20260101").samples[0].text == "?"
    assert [run.id for run in store.page(tmp_path).runs] == [new.id, old.id]
    assert store.page(tmp_path).runs[0].samples == ()
    with pytest.raises(HostError, match="2 runs begin or end"):
        store.find(tmp_path, "2026")


@pytest.mark.parametrize("wanted", ["nobody", "../x", "", "*", "\0", "/etc/passwd"])
def test_a_name_of_none_is_refused_and_leads_nowhere(tmp_path: Path, wanted: str) -> None:
    with pytest.raises(HostError, match="Nothing was measured") as raised:
        store.find(tmp_path / "bench", wanted)
    assert raised.value.reason is Reason.NOT_FOUND
    kept(tmp_path / "bench", "20260101-000000-quick-aaaa")
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(HostError, match="There is no run"):
        store.find(tmp_path / "bench", wanted)


@pytest.mark.parametrize("content", ["", "{}", "[" * 10_000, '{"id": "another"}', "\0" * 64])
def test_a_damaged_file_is_named_and_hides_no_other(tmp_path: Path, content: str) -> None:
    whole = kept(tmp_path, "20260101-000000-quick-aaaa")
    (tmp_path / "20260103-000000-quick-cccc.json").write_text(content)
    page = store.page(tmp_path)
    assert [run.id for run in page.runs] == [whole.id]
    assert page.unreadable == ("20260103-000000-quick-cccc.json",)
    with pytest.raises(HostError, match="cannot be read"):
        store.find(tmp_path, "cccc")
