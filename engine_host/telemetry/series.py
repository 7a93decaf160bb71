"""The series that are measured: their units, titles, and where each number comes from."""

import re
from dataclasses import dataclass, replace

from engine_host.protocol.host import RECORDED
from engine_host.protocol.language import tr
from engine_host.protocol.telemetry import RECORDED_PREFIX


@dataclass(frozen=True)
class SeriesKind:
    """One kind of series; `name` has `N` for a number and `ID` for an engine's id, `title` `{number}`.

    A step of a series with `peaks` is its highest value, of one without the mean: a prompt read in a second
    is seen in a day's graph, while a processor that was busy for a second was not busy.
    """

    name: str
    pattern: re.Pattern[str]
    unit: str
    title: str
    source: str
    peaks: bool


def _kind(name: str, unit: str, title: str, source: str, *, peaks: bool = True) -> SeriesKind:
    pattern = re.escape(name).replace("N", r"(\d{1,3})").replace("ID", r"(.+?)", 1)
    return SeriesKind(name, re.compile(pattern + r"\Z"), unit, title, source, peaks)


_PSUTIL = "operating system"
_NVML = "NVIDIA driver (NVML)"
_SLOTS = "the engine (llama-server /slots, vLLM /metrics)"
_METRICS = "the engine's /metrics"
_WAITS = "the engine's /metrics, else the endpoint's clock"
_PROMPTS = "the engine's own timing of prompts (/metrics)"

_MEASURED = (
    _kind("ram.used", "bytes", "RAM used", _PSUTIL),
    _kind("ram.total", "bytes", "RAM", _PSUTIL),
    _kind("cpu.share", "share", "CPU", _PSUTIL, peaks=False),
    _kind("gpu.N.memory.used", "bytes", "GPU {number} VRAM used", _NVML),
    _kind("gpu.N.memory.total", "bytes", "GPU {number} VRAM", _NVML),
    _kind("gpu.N.utilization", "share", "GPU {number} utilization", _NVML, peaks=False),
    _kind("gpu.N.temperature", "celsius", "GPU {number} temperature", _NVML),
    _kind("gpu.N.power", "watts", "GPU {number} power", _NVML, peaks=False),
    _kind("gpu.N.power.limit", "watts", "GPU {number} power limit", _NVML),
    _kind("gpu.N.memory.utilization", "share", "GPU {number} memory controller", _NVML, peaks=False),
    _kind("gpu.N.memory.temperature", "celsius", "GPU {number} memory temperature", _NVML),
    _kind("gpu.N.clock", "megahertz", "GPU {number} clock", _NVML, peaks=False),
    _kind("gpu.N.memory.clock", "megahertz", "GPU {number} memory clock", _NVML, peaks=False),
    _kind("gpu.N.throttled", "share", "GPU {number} throttled (power, heat)", _NVML, peaks=False),
    _kind("gpu.N.pcie.generation", "number", "GPU {number} PCIe generation", _NVML),
    _kind("gpu.N.pcie.width", "number", "GPU {number} PCIe lanes", _NVML),
    _kind("gpu.N.energy", "joules", "GPU {number} energy since its driver was loaded", _NVML),
    _kind("gpu.N.ecc.errors", "number", "GPU {number} uncorrected memory errors", _NVML),
    _kind("disk.read", "bytes/s", "Disk read", _PSUTIL, peaks=False),
    _kind("disk.written", "bytes/s", "Disk written", _PSUTIL, peaks=False),
    _kind("network.received", "bytes/s", "Network received", _PSUTIL, peaks=False),
    _kind("network.sent", "bytes/s", "Network sent", _PSUTIL, peaks=False),
    _kind("engine.ID.memory", "bytes", "Engine RAM", _PSUTIL),
    _kind("engine.ID.kv.tokens", "tokens", "KV cache", _SLOTS),
    _kind("engine.ID.kv.share", "share", "KV cache filled", _SLOTS),
    _kind("engine.ID.kv.cached", "share", "of which prefix cache", _SLOTS),
    _kind("engine.ID.generated", "tokens", "Tokens generated since its start", _METRICS),
    _kind("engine.ID.decode_rate", "tokens/s", "Decode", _METRICS),
    _kind("engine.ID.prefill_rate", "tokens/s", "Prefill", _PROMPTS),
    _kind("engine.ID.requests.running", "requests", "Requests running", _SLOTS),
    _kind("engine.ID.requests.waiting", "requests", "Requests waiting", "endpoint's queue"),
    _kind("engine.ID.acceptance_length", "tokens", "Acceptance length", _METRICS, peaks=False),
    _kind("engine.ID.acceptance.N", "share", "Draft acceptance at position {number}", _METRICS, peaks=False),
    _kind("engine.ID.prefix_hits", "share", "Prefix cache hit rate", _METRICS, peaks=False),
    _kind("engine.ID.preemptions", "requests", "Requests preempted", _METRICS),
    _kind("engine.ID.ttft", "seconds", "Time to first token", _WAITS, peaks=False),
    _kind("engine.ID.itl", "seconds", "Between tokens (ITL)", _WAITS, peaks=False),
    _kind("engine.ID.queued", "seconds", "Time in the engine's queue", _METRICS, peaks=False),
)
KINDS = _MEASURED + tuple(
    SeriesKind(
        RECORDED_PREFIX + kind.name,
        re.compile(re.escape(RECORDED_PREFIX) + kind.pattern.pattern),
        kind.unit,
        kind.title,
        f"{RECORDED}; there: {_NVML}",
        kind.peaks,
    )
    for kind in _MEASURED
    if kind.source is _NVML
)


def describe(name: str) -> SeriesKind:
    """Return the kind of a series with its title filled in; raises KeyError for an unknown name."""
    for kind in KINDS:
        match = kind.pattern.match(name)
        if match is not None:
            title = tr(kind.title, number=(match.groups() or ("",))[-1])
            if name.startswith(RECORDED_PREFIX):
                title = tr("{title}, recorded", title=title)
            return replace(kind, title=title)
    raise KeyError(name)
