"""Checks before a start of vLLM; each finding says what to do, and an error stops the start."""

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine_host.core.findings.table import finding
from engine_host.engines.vllm.command import speculation_method
from engine_host.engines.vllm.pins import current, install_fix
from engine_host.fit import vllm
from engine_host.fit.estimate import Estimate
from engine_host.fit.kv import TURBOQUANT
from engine_host.fit.start import Device
from engine_host.launch.dependencies import Environment
from engine_host.launch.memory import main_memory, vllm_model, vllm_needs, vllm_start
from engine_host.launch.plans.vllm_defaults import GPU_SLACK, Machine, breaks_prefix_caching
from engine_host.launch.preflight import turboquant
from engine_host.launch.resolution import Resolution
from engine_host.library.checkpoint import CheckpointInfo
from engine_host.library.hub.choices import CHECKPOINT
from engine_host.protocol.base import Severity
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.plans import MAIN_MEMORY, DeviceNeed, Finding, Layer

_GIB = 2**30
# It gives drafted tokens the temperature of their request, which the CPU build loses.
_SAMPLING_PATCH = "cpu-speculation-sampling"
# It tells 0.26's newer runner, which hybrids get, of TurboQuant's cache.
_SHAPE_PATCH = "turboquant-hybrid-cache-shape"


def findings(
    info: CheckpointInfo,
    resolved: Resolution,
    environment: Environment,
    machine: Machine,
    total_memory: int,
    patches: Collection[str],
) -> list[Finding]:
    """Return the findings of a start; memory in bytes, as the start finds it.

    `patches` are the ids of those that are applied.
    """
    found = [*_context(info, resolved), *_speculation(info, resolved, environment), *_model(info, resolved)]
    if environment.build == "cpu":
        found += _ram(info, resolved, environment, machine, total_memory)
        found += _sampling(resolved, patches)
        found.append(finding("cpu_build"))
    else:
        found += _hybrid_cache(info, resolved, environment, patches)
        found += _invariance(info, resolved, patches)
        found += _gpus(resolved, machine) or _vram(info, resolved, environment, machine)
    return found


@dataclass(frozen=True)
class Needs:
    """The memory of a start by device: as it is planned, and what it cannot begin without."""

    planned: tuple[DeviceNeed, ...]
    least: tuple[DeviceNeed, ...]


def needs(
    info: CheckpointInfo, resolved: Resolution, environment: Environment, machine: Machine, total_memory: int
) -> Needs:
    """Return the memory that a start takes: on GPUs its share of each, of which it needs at least a part."""
    if environment.build == "cpu":
        memory = (main_memory(machine.free_memory, total_memory),)
        planned = _needed(info, resolved, environment, memory)
        both = (DeviceNeed(device=MAIN_MEMORY, bytes=planned),)
        return Needs(both, both)
    chosen = machine.chosen(int(resolved["tensor_parallel"]))
    if not chosen:
        return Needs((), ())
    likely = _likely(info, resolved, environment, chosen)[1]
    share = float(resolved["gpu_memory"])
    said = resolved.layer("gpu_memory") not in {Layer.ENGINE, Layer.HARDWARE}
    shares, least = [], []
    for gpu in chosen:
        whole = int(gpu.memory_total * share)
        shares.append(DeviceNeed(device=gpu.uuid, bytes=whole))
        wanted = max(likely, whole) if said else likely + int(gpu.memory_total * GPU_SLACK)
        least.append(DeviceNeed(device=gpu.uuid, bytes=wanted))
    return Needs(tuple(shares), tuple(least))


def _needed(
    info: CheckpointInfo, resolved: Resolution, environment: Environment, devices: Sequence[Device]
) -> int:
    """Bytes of main memory that a start takes with its KV cache."""
    found = _needs(info, resolved, environment, devices)
    return int(float(resolved["kv_cache_gib"]) * _GIB) + (info.size if found is None else found.fixed)


def _likely(
    info: CheckpointInfo, resolved: Resolution, environment: Environment, chosen: Sequence[Gpu]
) -> tuple[int, int, int]:
    """Bytes on each GPU: of the weights, of all that one request needs, and the least that may be."""
    devices = [Device(gpu.name, gpu.memory_total, 0, gpu.compute_capability) for gpu in chosen]
    found = _needs(info, resolved, environment, devices)
    if found is None:
        return (info.size // len(chosen),) * 3
    # What lies beyond vLLM's share is not taken off it.
    shared = [part for part in found.parts if not part.beyond]
    likely = sum(part.bytes for part in shared) + found.kv_one
    return _size(found, "weights"), likely, sum(part.low for part in shared) + found.kv_one


def _ram(
    info: CheckpointInfo, resolved: Resolution, environment: Environment, machine: Machine, total: int
) -> list[Finding]:
    devices = (main_memory(machine.free_memory, total),)
    found = _kv_cache(info, resolved, environment, devices)
    estimated = _needs(info, resolved, environment, devices)
    kv = int(float(resolved["kv_cache_gib"]) * _GIB)
    weights = info.size if estimated is None else _size(estimated, "weights")
    needed = _needed(info, resolved, environment, devices)
    if needed <= machine.free_memory:
        return found
    hopeless = needed > total
    found.append(
        finding(
            "memory_short/vllm",
            severity=Severity.ERROR if hopeless else Severity.WARNING,
            evidence={"weights": weights, "kv_cache": kv, "total": total},
            needed=needed,
            free=machine.free_memory,
            most=total if hopeless else None,
        )
    )
    return found


def _needs(
    info: CheckpointInfo, resolved: Resolution, environment: Environment, devices: Sequence[Device]
) -> Estimate | None:
    model = vllm_model(info)
    if model is None:
        return None
    return vllm_needs(model, vllm_start(resolved, model, environment.build, devices, environment.version))


def _size(estimated: Estimate, name: str) -> int:
    return next(part.bytes for part in estimated.parts if part.name == name)


def _kv_cache(
    info: CheckpointInfo, resolved: Resolution, environment: Environment, devices: Sequence[Device]
) -> list[Finding]:
    """vLLM refuses to start when one request of full length does not fit."""
    estimated = _needs(info, resolved, environment, devices)
    model, context = vllm_model(info), int(resolved["context"])
    if estimated is None or model is None or resolved["kv_cache_gib"] is None:
        return []
    if estimated.kv_one <= estimated.kv_budget:
        return []
    fits = vllm.pool(model, estimated.start).longest(estimated.kv_budget, 1, context)
    return [finding("kv_cache_small", kv_cache_gib=resolved["kv_cache_gib"], tokens=fits, context=context)]


def _gpus(resolved: Resolution, machine: Machine) -> list[Finding]:
    if not machine.gpus:
        return [finding("no_gpu", fix=install_fix(current("cpu"), ""))]
    count = int(resolved["tensor_parallel"])
    if count <= len(machine.gpus):
        return []
    return [
        finding(
            "too_few_gpus",
            settings={"tensor_parallel": len(machine.gpus)},
            tensor_parallel=count,
            gpus=len(machine.gpus),
        )
    ]


def _vram(
    info: CheckpointInfo, resolved: Resolution, environment: Environment, machine: Machine
) -> list[Finding]:
    chosen = machine.chosen(int(resolved["tensor_parallel"]))
    devices = [Device(gpu.name, gpu.memory_total, 0, gpu.compute_capability) for gpu in chosen]
    found = _kv_cache(info, resolved, environment, devices)
    room = min(int(gpu.memory_total * float(resolved["gpu_memory"])) for gpu in chosen)
    free = min(gpu.memory_free for gpu in chosen)
    each, likely, least = _likely(info, resolved, environment, chosen)
    # Only what is too much at the lower end of every estimate stops a start.
    hopeless = least > room
    if not hopeless and likely <= room and each <= free:
        return found
    found.append(
        finding(
            "vram_short/weights" if likely <= room else "vram_short/vllm",
            severity=Severity.ERROR if hopeless else Severity.WARNING,
            evidence={"gpus": len(chosen)},
            weights=each,
            needed=likely,
            room=room,
            free=free,
            model=str(info.path),
        )
    )
    return found


def _context(info: CheckpointInfo, resolved: Resolution) -> list[Finding]:
    # A model with stretched positions reaches further than it says, and vLLM works out how far.
    if not info.context or int(resolved["context"]) <= info.context or info.rope_scaled:
        return []
    return [
        finding(
            "context_beyond_training/vllm",
            settings={"context": info.context},
            trained=info.context,
            context=resolved["context"],
        )
    ]


def _speculation(info: CheckpointInfo, resolved: Resolution, environment: Environment) -> list[Finding]:
    speculation = str(resolved["speculation"])
    method = speculation_method(speculation)
    if method == "mtp" and not info.mtp_layers:
        return [finding("no_mtp_layer", settings={"speculation": "off"})]
    if method is None and info.mtp_layers and not resolved["embeddings"]:
        return [finding("mtp_available", settings={"speculation": "mtp"}, speculation="mtp")]
    if not breaks_prefix_caching(info, speculation, environment.build):
        return []
    if resolved["prefix_caching"] and resolved.layer("prefix_caching") in {Layer.USER, Layer.OVERRIDE}:
        return [finding("prefix_caching_breaks")]
    return [
        finding(
            "prefix_caching_off",
            settings={"speculation": "off"},
            evidence={"kernel": "precopy_mamba_align_fused_kernel", "vllm": environment.version},
        )
    ]


def drafter_missing(name: str) -> Finding:
    """The model that drafts is not on this machine."""
    words = ["sndr", "models", "download", name, "--choice", CHECKPOINT]
    return finding(
        "drafter_missing",
        command=None if Path(name).is_absolute() else shlex.join(words),
        drafter=name,
    )


def _sampling(resolved: Resolution, patches: Collection[str]) -> list[Finding]:
    if speculation_method(str(resolved["speculation"])) is None or _SAMPLING_PATCH in patches:
        return []
    return [
        finding(
            "speculation_samples_noise",
            evidence={"kernel": "vllm.utils.cpu_triton_utils._expand_kernel_impl"},
            patch=_SAMPLING_PATCH,
        )
    ]


def _hybrid_cache(
    info: CheckpointInfo, resolved: Resolution, environment: Environment, patches: Collection[str]
) -> list[Finding]:
    kind = str(resolved["kv_cache_dtype"])
    if not (environment.version.startswith("0.26.") and info.hybrid and kind in TURBOQUANT):
        return []
    if _SHAPE_PATCH in patches:
        return []
    return [finding("turboquant_hybrid", patch=_SHAPE_PATCH, kv_cache_dtype=kind, vllm=environment.version)]


def _invariance(info: CheckpointInfo, resolved: Resolution, patches: Collection[str]) -> list[Finding]:
    if not resolved["batch_invariant"]:
        return []
    off = {"batch_invariant": False}
    if info.hybrid:
        return [finding("invariance_of_hybrid", settings=off, layers=sorted(set(info.layer_types)))]
    kind = str(resolved["kv_cache_dtype"])
    if kind in TURBOQUANT and turboquant.PATCH not in patches:
        return [
            finding("invariance_of_turboquant", settings=off, patch=turboquant.PATCH, kv_cache_dtype=kind)
        ]
    return []


def _model(info: CheckpointInfo, resolved: Resolution) -> list[Finding]:
    found: list[Finding] = []
    if info.shape and not resolved["dummy_weights"]:
        found.append(finding("weights_missing"))
    elif resolved["dummy_weights"]:
        found.append(finding("dummy_weights"))
    if not info.tokenizer:
        found.append(finding("no_tokenizer/embeddings" if resolved["embeddings"] else "no_tokenizer"))
    elif not info.chat_template and not resolved["embeddings"]:
        found.append(finding("no_chat_template"))
    return found
