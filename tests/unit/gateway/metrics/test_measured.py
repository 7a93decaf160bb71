"""What telemetry measured is at `/metrics` by Prometheus' names; what it did not measure is nowhere."""

import asyncio
import re
from pathlib import Path

import pytest

from engine_host.core.settings import SettingsFile
from engine_host.gateway.directory import Target
from engine_host.gateway.metrics.exposition import written
from engine_host.gateway.metrics.measured import (
    FRESH,
    METRICS,
    SINCE_LAST_SAMPLE,
    Measured,
    measured_families,
)
from engine_host.gateway.metrics.remote import FRESH as REMOTE_FRESH
from engine_host.gateway.metrics.remote import READ, MachineSample, RemoteEngineFigures, RemoteFigures
from engine_host.protocol.engines import Readings
from engine_host.protocol.host import Gpu, GpuAbsence
from engine_host.protocol.patches import (
    EnginePatches,
    PatchOutcome,
    PatchProbe,
    PatchResult,
    PlannedPatches,
    ProcessPatches,
    ProcessRole,
)
from engine_host.protocol.telemetry import Sample
from engine_host.telemetry import Gpus, History, MachineMonitor, Sampler
from engine_host.telemetry.playback import TracePlayer
from engine_host.telemetry.sampler import engine_values, gpu_values
from engine_host.telemetry.series import KINDS
from tests.unit.core.gpu_trace.test_format import CARD, LATER
from tests.unit.core.gpu_trace.test_format import written as trace
from tests.unit.gateway.metrics.test_metrics import samples, value

READINGS = Readings(
    at=5.0,
    kv_tokens=100,
    kv_capacity=400,
    generated_tokens_total=42,
    acceptance_by_position=(0.9, 0.5),
    preemptions_total=3,
    memory=1 << 30,
)
MODEL = Target("e1", "m", 2, 4096, 1000.0, socket="unused")


def told(measured: Measured, at: float = 5.0) -> str:
    return written(measured_families(measured, [MODEL], lambda: at)).decode()


def of_gpus(*gpus: Gpu) -> Measured:
    return Measured("box", Sample(at=5.0, values=gpu_values(gpus)), gpus)


def test_every_series_has_a_metric_whose_name_says_its_base_unit() -> None:
    kinds = {kind.name: kind for kind in KINDS}
    assert kinds.keys() == METRICS.keys() | SINCE_LAST_SAMPLE
    assert len(set(METRICS.values())) == len(METRICS)
    endings = {
        "bytes": "bytes", "bytes/s": "bytes_per_second", "share": "ratio", "celsius": "celsius",
        "watts": "watts", "megahertz": "hertz", "joules": "joules_total",
        "seconds": "seconds", "tokens/s": "tokens_per_second",
    }  # fmt: skip
    for name, metric in METRICS.items():
        assert re.fullmatch(r"sndr_(recorded_)?(host|gpu|engine)_[a-z_]+", metric)
        if not name.endswith("throttled"):
            assert metric.endswith(endings.get(kinds[name].unit, "")), metric


def test_a_gpu_is_told_by_number_uuid_name_and_host_in_base_units() -> None:
    text = told(of_gpus(CARD.model_copy(update={"clock": 1500, "energy": 7.5})))
    card = {"gpu": "3", "uuid": "GPU-6f1c", "host": "box"}
    assert 'name="Made-up 24"' in text
    assert value(text, "sndr_gpu_power_watts", **card) == 101.5
    assert value(text, "sndr_gpu_clock_hertz", **card) == 1.5e9
    assert value(text, "sndr_gpu_utilization_ratio", **card) == 0.25
    assert value(text, "sndr_gpu_energy_joules_total", **card) == 7.5
    assert value(text, "sndr_gpu_slowed_down", **card) == 0
    assert "# TYPE sndr_gpu_energy_joules_total counter" in text
    assert "# TYPE sndr_gpu_power_watts gauge" in text


def test_what_a_gpu_does_not_tell_is_absent_and_never_0() -> None:
    text = told(of_gpus(LATER))
    assert "sndr_gpu_memory_used_bytes" in text
    for metric in (
        "power_watts",
        "temperature_celsius",
        "ecc_uncorrected_errors_total",
        "energy_joules_total",
    ):
        assert f"sndr_gpu_{metric}" not in text


def test_engines_are_told_with_their_model_and_counters_beside_what_is_since_a_sample() -> None:
    values = engine_values("e1", READINGS, READINGS) | engine_values("e2", READINGS)
    text = told(Measured("box", Sample(at=5.0, values=values), readings={"e1": READINGS}))
    ours = {"engine": "e1", "model": "m", "host": "box"}
    assert value(text, "sndr_engine_kv_usage_ratio", **ours) == 0.25
    assert value(text, "sndr_engine_generated_tokens_total", **ours) == 42
    assert value(text, "sndr_engine_draft_acceptance_ratio", position="2", **ours) == 0.5
    assert value(text, "sndr_engine_preemptions_total", **ours) == 3
    assert value(text, "sndr_engine_kv_capacity_tokens", **ours) == 400
    assert value(text, "sndr_engine_memory_bytes", engine="e2") == 1 << 30
    for name in ("prefix_hits", "prefix_hit_tokens", "decode_tokens_per_second", "first_token"):
        assert f"sndr_engine_{name}" not in text


@pytest.mark.parametrize("at", [5.0 + FRESH + 1, 5.0 - FRESH - 1])
def test_a_sample_of_then_is_not_shown_as_now(at: float) -> None:
    measured = of_gpus(CARD)
    assert "sndr_gpu_power_watts" in told(measured)
    assert ("sndr_gpu" in told(measured, at)) is (at < 5.0), "a clock that was put back hides nothing"


def test_a_machine_without_gpus_says_why() -> None:
    measured = Measured("box", Sample(at=5.0, values={"ram.used": 7.0}), absence=GpuAbsence.NO_DRIVER)
    text = told(measured)
    assert samples(text).keys() == {
        ("sndr_gpu_absent", frozenset({("host", "box"), ("reason", "no_driver")})),
        ("sndr_host_memory_used_bytes", frozenset({("host", "box")})),
        ("sndr_sample_timestamp_seconds", frozenset({("host", "box")})),
    }
    assert told(Measured("box")) == ""


def test_a_played_trace_stands_by_names_of_its_own(tmp_path: Path) -> None:
    settings = SettingsFile(tmp_path / "s")
    settings.change({"host.gpu_trace": str(trace(tmp_path / "t", (0.0, CARD)))})

    async def go() -> str:
        player = TracePlayer(settings)
        sampler = Sampler(MachineMonitor(), Gpus(None), History(), lambda _: None, dict, player=player)
        sample = await sampler.sample()
        assert player.shown is not None
        measured = Measured("box", sample, recorded=player.shown.gpus)
        await sampler.aclose()
        return told(measured, sample.at)

    text = asyncio.run(go())
    assert value(text, "sndr_recorded_gpu_power_watts", gpu="3", uuid="recorded-0", host="box") == 101.5
    assert "recorded, not this machine" in text
    assert "sndr_gpu_" not in text
    assert "sndr_host_memory_used_bytes" in text


def process(pid: int, role: ProcessRole, **outcomes: PatchOutcome | PatchResult) -> ProcessPatches:
    results = tuple(
        one if isinstance(one, PatchResult) else PatchResult(patch=name, outcome=one)
        for name, one in outcomes.items()
    )
    return ProcessPatches(pid=pid, role=role, since=1.0, results=results)


def test_patches_that_are_live_are_told_by_kind_of_process() -> None:
    applied, failed, pending = PatchOutcome.APPLIED, PatchOutcome.FAILED, PatchOutcome.PENDING
    missed = PatchResult(patch="c", outcome=applied, probe=PatchProbe(at=4.0, live=False, why="replaced"))
    patches = EnginePatches(
        seq=1,
        engine="e1",
        planned=PlannedPatches(digest="d", chosen=("a", "b", "c")),
        processes=(
            process(1, ProcessRole.API_SERVER, a=pending, b=applied),
            process(2, ProcessRole.WORKER, a=applied, b=applied, c=missed, nobodys=applied),
            process(3, ProcessRole.WORKER, a=applied, b=failed, c=applied),
        ),
    )
    text = told(Measured("box", patches=(patches, EnginePatches(seq=1, engine="e2", planned=None))))
    ours = {"host": "box", "engine": "e1", "model": "m"}
    shown = {
        (labels["patch"], labels["process"], labels["state"]): number
        for (name, pairs), number in samples(text).items()
        if name == "sndr_engine_patch_live" and (labels := dict(pairs)).items() >= ours.items()
    }
    assert shown == {
        ("a", "APIServer", "pending"): 0,
        ("b", "APIServer", "applied"): 1,
        ("a", "Worker", "applied"): 1,
        ("b", "Worker", "failed"): 0,
        ("c", "Worker", "applied"): 0,
    }, "one that a probe missed is not live, and what nobody chose has no series"
    assert len(samples(text)) == len(shown)


def test_engines_of_other_machines_stand_by_names_of_their_own_while_they_are_told() -> None:
    assert set(READ) <= Readings.model_fields.keys()
    there = RemoteEngineFigures("e9", "q", {"decode_rate": 3.0, "preemptions_total": 2.0})
    remote = RemoteFigures("gpu", 5.0, 3.0, (there,), 5.0)
    text = told(Measured("box", remote=(remote,)))
    assert value(text, "sndr_remote_decode_tokens_per_second", host="box", remote="gpu") == 3
    theirs = {"host": "box", "remote": "gpu", "engine": "e9", "model": "q"}
    assert value(text, "sndr_remote_engine_decode_tokens_per_second", **theirs) == 3
    assert "# TYPE sndr_remote_engine_preemptions_total counter" in text
    assert "kv" not in text, "what it did not measure is absent"
    assert told(Measured("box", remote=(remote,)), 5.0 + REMOTE_FRESH + 1) == ""
    assert told(Measured("box", remote=(RemoteFigures("gpu"),))) == ""


def test_a_machine_without_an_engine_host_stands_by_names_of_its_own_while_it_is_read() -> None:
    values = {"ram.used": 7.0, "gpu.0.power": 300.5, "gpu.1.memory.used": 9.0}
    sample = MachineSample(Sample(at=5.0, values=values), {"0": {"uuid": "GPU-a", "name": "A, or B"}})
    text = told(Measured("box", remote=(RemoteFigures("gpu", machine=sample),)))
    theirs = {"host": "box", "remote": "gpu"}
    assert value(text, "sndr_remote_host_memory_used_bytes", **theirs) == 7
    assert value(text, "sndr_remote_gpu_power_watts", gpu="0", uuid="GPU-a", **theirs) == 300.5
    assert 'name="A, or B"' in text
    assert value(text, "sndr_remote_gpu_memory_used_bytes", gpu="1", **theirs) == 9
    assert len(samples(text)) == len(values), "what was not read is absent, and nothing is of this machine"
    assert told(Measured("box", remote=(RemoteFigures("gpu", machine=sample),)), 6.0 + REMOTE_FRESH) == ""
