"""A run is stale when a pin moved since, and a baseline is one of its workload, model and server."""

from pathlib import Path
from typing import Any

import pytest

from engine_host.bench.conditions.pins import with_staleness
from engine_host.bench.kept import runs as kept_runs
from engine_host.core.errors import HostError
from engine_host.protocol.bench.lab import (
    Figure,
    LabEngine,
    LabMachine,
    LabRun,
    PartResult,
    Quantity,
    Sample,
    Standing,
    WorkloadName,
)
from engine_host.protocol.errors import Reason

ENGINE = LabEngine(address="s", model="m", id="e1", engine="vllm", version="vLLM 0.26.0", patches=("a", "b"))
MACHINE = LabMachine(program="1", python="3", system="s", gpus=("RTX 3090",), driver="570.1")


def a_run(day: int, *, model: str = "m", asked: str = "h", driver: str = "570.1", **changed: Any) -> LabRun:
    sample = Sample(part="p", number=0, warm=False, salt="s", started=0.0, total=1.0)
    plain: dict[str, Any] = {
        "id": f"202601{day:02}-000000-quick-aaaa",
        "workload": WorkloadName.QUICK,
        "started_at": float(day),
        "seed": 1,
        "complete": True,
        "engine": ENGINE.model_copy(update={"model": model}),
        "machine": MACHINE.model_copy(update={"driver": driver}),
        "workload_hash": asked,
        "samples": (sample,),
    }
    return LabRun(**{**plain, **changed})


def test_a_run_is_stale_towards_the_newest_of_its_model_and_kind_of_engine() -> None:
    newer = ENGINE.model_copy(update={"version": "vLLM 0.32.0", "patches": ("b", "c")})
    other = ENGINE.model_copy(update={"engine": "llama.cpp", "version": "b9", "patches": ()})
    runs = with_staleness([a_run(3, engine=newer, driver="580"), a_run(2, engine=other), a_run(1)])
    assert [run.stale for run in runs] == [
        "",
        "",
        "vllm vLLM 0.26.0 → vLLM 0.32.0, driver 570.1 → 580, patch a off, patch c on",
    ]


def test_what_runs_now_counts_before_the_newest_run_and_an_address_is_never_stale() -> None:
    now = (ENGINE.model_copy(update={"model_path": "/x/other.gguf"}), MACHINE)
    address = LabEngine(address="http://x", model="m")
    runs = with_staleness([a_run(2), a_run(1, engine=address)], [now])
    assert [run.stale for run in runs] == ["weights m → other.gguf", ""]


def test_one_run_of_a_workload_and_model_is_the_baseline(tmp_path: Path) -> None:
    runs = [a_run(1), a_run(2), a_run(3, model="n"), a_run(4, asked="i")]
    for run in runs:
        kept_runs.save(tmp_path, run)
    for run in (runs[0], runs[2], runs[3], runs[1]):
        kept_runs.mark(tmp_path, run.id, on=True)
    assert [run.id for run in kept_runs.page(tmp_path).runs if run.baseline] == [
        runs[3].id,
        runs[2].id,
        runs[1].id,
    ]
    assert kept_runs.find(tmp_path, runs[1].id).samples, "marking loses nothing"
    kept_runs.mark(tmp_path, runs[1].id, on=False)
    assert not kept_runs.find(tmp_path, runs[1].id).baseline


def test_each_server_and_kind_of_engine_has_its_own_baseline(tmp_path: Path) -> None:
    engines = [
        ENGINE,
        ENGINE.model_copy(update={"engine": "llama.cpp", "id": "e2"}),
        LabEngine(address="http://one/v1", model="m"),
        LabEngine(address="http://two/v1", model="m"),
    ]
    runs = [a_run(day, engine=engine, baseline=True) for day, engine in enumerate(engines, 1)]
    for run in runs:
        kept_runs.save(tmp_path, run)
        kept_runs.mark(tmp_path, run.id, on=True)
    assert all(run.baseline for run in kept_runs.page(tmp_path).runs)
    again = a_run(9, engine=LabEngine(address="http://one/v1/", model="m"))
    kept_runs.save(tmp_path, again)
    kept_runs.mark(tmp_path, again.id, on=True)
    marked = {run.id for run in kept_runs.page(tmp_path).runs if run.baseline}
    assert marked == {run.id for run in (*runs, again)} - {runs[2].id}


def test_nothing_is_held_to_a_run_that_is_partial_or_struck(tmp_path: Path) -> None:
    struck = Figure(quantity=Quantity.DECODE, standing=Standing.STRUCK, value=1.0)
    part = PartResult(name="p", streams=1, warm=1, measured=5, max_tokens=9, done=5, figures=(struck,))
    for run in (a_run(1, complete=False), a_run(2, parts=(part,))):
        kept_runs.save(tmp_path, run)
        with pytest.raises(HostError) as caught:
            kept_runs.mark(tmp_path, run.id, on=True)
        assert caught.value.reason is Reason.CONFLICT
        kept_runs.mark(tmp_path, run.id, on=False)
