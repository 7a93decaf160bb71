"""The newest figures of this machine, its GPUs and engines by Prometheus' names and base units.

A series that is not measured now is absent, and never 0. What a trace recorded elsewhere stands by names
of its own, so that no sum over the GPUs of this machine holds one that is not there.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engine_host.gateway.directory import Target
from engine_host.gateway.metrics.exposition import Family
from engine_host.gateway.metrics.patches import NAME as PATCH_LIVE
from engine_host.gateway.metrics.patches import TEXT as PATCH_TEXT
from engine_host.gateway.metrics.patches import live_patches
from engine_host.gateway.metrics.remote import FRESH as REMOTE_FRESH
from engine_host.gateway.metrics.remote import RemoteFigures, remote_values
from engine_host.protocol.engines import Readings
from engine_host.protocol.host import Gpu, GpuAbsence
from engine_host.protocol.patches import EnginePatches
from engine_host.protocol.telemetry import RECORDED_PREFIX, Sample
from engine_host.telemetry.series import KINDS, SeriesKind

FRESH = 10.0
"""Seconds after which a sample is of then, and not of now: a driver in trouble holds the sampler up."""
SINCE_LAST_SAMPLE = frozenset({"engine.ID.prefix_hits", "engine.ID.preemptions"})
"""Series of what happened since the sample before; a reader who comes less often needs counters instead."""
_GPU, _ENGINE = "gpu.N.", "engine.ID."
_NAMES = {
    "ram.used": "host_memory_used_bytes",
    "ram.total": "host_memory_bytes",
    "cpu.share": "host_cpu_usage_ratio",
    "disk.read": "host_disk_read_bytes_per_second",
    "disk.written": "host_disk_written_bytes_per_second",
    "network.received": "host_network_received_bytes_per_second",
    "network.sent": "host_network_sent_bytes_per_second",
    _GPU + "memory.used": "gpu_memory_used_bytes",
    _GPU + "memory.total": "gpu_memory_bytes",
    _GPU + "utilization": "gpu_utilization_ratio",
    _GPU + "temperature": "gpu_temperature_celsius",
    _GPU + "power": "gpu_power_watts",
    _GPU + "power.limit": "gpu_power_limit_watts",
    _GPU + "memory.utilization": "gpu_memory_controller_utilization_ratio",
    _GPU + "memory.temperature": "gpu_memory_temperature_celsius",
    _GPU + "clock": "gpu_clock_hertz",
    _GPU + "memory.clock": "gpu_memory_clock_hertz",
    _GPU + "throttled": "gpu_slowed_down",
    _GPU + "pcie.generation": "gpu_pcie_generation",
    _GPU + "pcie.width": "gpu_pcie_lanes",
    _GPU + "energy": "gpu_energy_joules_total",
    _GPU + "ecc.errors": "gpu_ecc_uncorrected_errors_total",
    _ENGINE + "memory": "engine_memory_bytes",
    _ENGINE + "kv.tokens": "engine_kv_tokens",
    _ENGINE + "kv.share": "engine_kv_usage_ratio",
    _ENGINE + "kv.cached": "engine_kv_kept_ratio",
    _ENGINE + "generated": "engine_generated_tokens_total",
    _ENGINE + "decode_rate": "engine_decode_tokens_per_second",
    _ENGINE + "prefill_rate": "engine_prefill_tokens_per_second",
    _ENGINE + "requests.running": "engine_requests_running",
    _ENGINE + "requests.waiting": "engine_requests_waiting",
    _ENGINE + "acceptance_length": "engine_acceptance_length_tokens",
    _ENGINE + "acceptance.N": "engine_draft_acceptance_ratio",
    _ENGINE + "ttft": "engine_first_token_mean_seconds",
    _ENGINE + "itl": "engine_inter_token_mean_seconds",
    _ENGINE + "queued": "engine_queue_mean_seconds",
}
METRICS = {
    **{name: f"sndr_{metric}" for name, metric in _NAMES.items()},
    **{
        RECORDED_PREFIX + name: f"sndr_recorded_{metric}"
        for name, metric in _NAMES.items()
        if name.startswith(_GPU)
    },
}
"""The name at `/metrics` of each kind of series."""
_SCALE = {"megahertz": 1e6}
_UNITS = {
    "share": "0 to 1",
    "megahertz": "in hertz",
    "celsius": "in degrees Celsius",
    "number": "counted",
}
_COUNTED = (
    ("preemptions_total", "sndr_engine_preemptions_total", "Requests that the engine preempted."),
    ("prefix_queries_total", "sndr_engine_prefix_queried_tokens_total",
     "Prompt tokens looked up in the prefix cache."),
    ("prefix_hits_total", "sndr_engine_prefix_hit_tokens_total", "Prompt tokens found in the prefix cache."),
    ("prompt_tokens_total", "sndr_engine_prompt_tokens_total", "Prompt tokens that the engine has read."),
    ("draft_tokens_total", "sndr_engine_draft_tokens_total", "Tokens that were drafted."),
    ("draft_accepted_total", "sndr_engine_draft_accepted_tokens_total", "Drafted tokens that were accepted."),
    ("kv_capacity", "sndr_engine_kv_capacity_tokens", "Tokens that the KV cache has room for."),
)  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """The newest sample of telemetry and what its series are of; `absence` says why there is no GPU."""

    host: str
    sample: Sample | None = None
    gpus: Sequence[Gpu] = ()
    absence: GpuAbsence | None = None
    recorded: Sequence[Gpu] = ()
    readings: Mapping[str, Readings] = field(default_factory=dict)
    patches: Sequence[EnginePatches] = ()
    remote: Sequence[RemoteFigures] = ()


def measured_families(
    measured: Measured, targets: Sequence[Target], clock: Callable[[], float] = time.time
) -> list[Family]:
    """Return a family for each kind of series that is measured now, and the engines' counters."""
    host = {"host": measured.host}
    models = {target.engine: target.name for target in targets}
    found: dict[str, Family] = {}

    def add(metric: str, text: str, value: float, **labels: str) -> None:
        kind = "counter" if metric.endswith("_total") else "gauge"
        found.setdefault(metric, Family(metric, kind, text)).add(value, **host, **labels)

    if measured.absence is not None:
        text = "1 where this machine has no GPU that can be read, and why."
        add("sndr_gpu_absent", text, 1, reason=measured.absence.value)
    for engine, readings in measured.readings.items():
        for name, metric, text in _COUNTED:
            if (count := getattr(readings, name)) is not None:
                add(metric, text, count, **_of_engine(engine, models))
    for patches in measured.patches:
        for told, live in live_patches(patches):
            add(PATCH_LIVE, PATCH_TEXT, live, **_of_engine(patches.engine, models), **told)
    for figures in measured.remote:
        for metric, text, value, its in remote_values(figures, clock()):
            add(metric, text, value, remote=figures.name, **its)
        for metric, text, value, its in _of_machine(figures, clock()):
            add(metric, text, value, remote=figures.name, **its)
    sample = measured.sample
    if sample is None or clock() - sample.at > FRESH:
        return [*found.values()]
    add("sndr_sample_timestamp_seconds", "When telemetry measured last, in Unix time.", sample.at)
    here = {str(gpu.index): _of_gpu(gpu) for gpu in measured.gpus}
    there = {str(gpu.index): _of_gpu(gpu) for gpu in measured.recorded}
    for kind, groups, value in _kinds(sample):
        labels: Mapping[str, str]
        if kind.name.startswith(RECORDED_PREFIX):
            labels = there.get(groups[0], {"gpu": groups[0]})
        elif kind.name.startswith(_GPU):
            labels = here.get(groups[0], {"gpu": groups[0]})
        elif kind.name.startswith(_ENGINE):
            place = {"position": groups[1]} if len(groups) > 1 else {}
            labels = {**_of_engine(groups[0], models), **place}
        else:
            labels = {}
        add(METRICS[kind.name], _text(kind), value * _SCALE.get(kind.unit, 1.0), **labels)
    return [*found.values()]


def _of_machine(told: RemoteFigures, now: float) -> Iterator[tuple[str, str, float, Mapping[str, str]]]:
    """Yield name, text, value and labels of what a machine without an engine host told of itself lately."""
    if told.machine is None or now - told.machine.sample.at > REMOTE_FRESH:
        return
    for kind, groups, value in _kinds(told.machine.sample):
        labels: Mapping[str, str] = (
            {"gpu": groups[0], **told.machine.gpus.get(groups[0], {})} if groups else {}
        )
        text = f"{_titled(kind)}; of another machine, as its own programs told over ssh."
        yield f"sndr_remote_{_NAMES[kind.name]}", text, value * _SCALE.get(kind.unit, 1.0), labels


def _kinds(sample: Sample) -> Iterator[tuple[SeriesKind, tuple[str, ...], float]]:
    """Yield each series of a sample that has a metric, with what its name holds beside its kind."""
    for name, value in sample.values.items():
        for kind in KINDS:
            match = kind.pattern.match(name) if kind.name in METRICS else None
            if match is not None:
                yield kind, match.groups(), value
                break


def _of_gpu(gpu: Gpu) -> Mapping[str, str]:
    return {"gpu": str(gpu.index), "uuid": gpu.uuid, "name": gpu.name}


def _of_engine(engine: str, models: Mapping[str, str]) -> Mapping[str, str]:
    return {"engine": engine, **({"model": models[engine]} if engine in models else {})}


def _text(kind: SeriesKind) -> str:
    return f"{_titled(kind)}; {kind.source}."


def _titled(kind: SeriesKind) -> str:
    title = kind.title.replace(" {number}", "").replace("{number}", "")
    unit = _UNITS.get(kind.unit, f"in {kind.unit.replace('/s', ' a second')}")
    return f"{title}, {unit}"
