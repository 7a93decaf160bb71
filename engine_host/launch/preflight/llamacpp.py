"""Checks before a start of llama.cpp; each finding says what to do, and an error stops the start."""

from collections.abc import Sequence

from engine_host.core.findings.table import finding
from engine_host.engines.llamacpp.servers import ServerCapabilities, build_fix
from engine_host.fit.shapes.model import ModelShape
from engine_host.fit.start import Device
from engine_host.launch.memory import llamacpp_longest, llamacpp_needs, main_memory
from engine_host.launch.placement import FoundMemory
from engine_host.launch.preflight.machine import MachineState, held_by
from engine_host.launch.resolution import Resolution
from engine_host.library.gguf import GgufInfo
from engine_host.protocol.base import Severity
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.plans import MAIN_MEMORY, DeviceNeed, Finding, ServerChoice

_SMALL = 1 << 30


def findings(
    model: GgufInfo,
    resolved: Resolution,
    server: ServerCapabilities,
    free_memory: int,
    total_memory: int,
    shape: ModelShape | None = None,
    gpus: Sequence[Gpu] = (),
) -> list[Finding]:
    """Return the findings of a start; memory in bytes, as the start finds it.

    `shape` is the model's where more is known of it than its file says, `gpus` are those of this machine.
    """
    found = [
        *_memory(model, resolved, server, free_memory, total_memory, shape),
        *_context(model, resolved),
        *_speculation(model, resolved),
    ]
    if gpus and not server.devices and resolved["gpu_layers"] != 0:
        found.append(_gpu_unused(model, server, gpus))
    elif server.choice is ServerChoice.PREBUILT:
        found.append(finding("prebuilt_server", fix=build_fix("")))
    return found


def _gpu_unused(model: GgufInfo, server: ServerCapabilities, gpus: Sequence[Gpu]) -> Finding:
    return finding(
        "gpu_unused",
        # A small model answers at once from anywhere.
        severity=Severity.WARNING if model.size >= _SMALL else Severity.INFO,
        fix=build_fix(""),
        name=gpus[0].name,
        choice=server.choice.value,
        server=server.label,
        other="built" if server.choice is ServerChoice.OWN else None,
        gpus=len(gpus),
    )


def _memory(
    model: GgufInfo,
    resolved: Resolution,
    server: ServerCapabilities,
    free_memory: int,
    total_memory: int,
    shape: ModelShape | None,
) -> list[Finding]:
    if server.devices:
        return []
    memory = (main_memory(free_memory, total_memory),)
    needs = llamacpp_needs(model, resolved, memory, server.choice, shape=shape)
    needed = model.size if needs is None else needs.needed
    kv = None if needs is None else needs.kv
    if needed <= free_memory:
        return []
    # Other programs may give memory back; what this machine does not have, nobody can.
    hopeless = needed > total_memory
    longest = llamacpp_longest(model, resolved, memory, server.choice, shape=shape)
    return [
        finding(
            "memory_short/llama.cpp",
            severity=Severity.ERROR if hopeless else Severity.WARNING,
            evidence={"weights": model.size, "kv_estimate": kv, "total": total_memory},
            parts="The weights alone" if kv is None else "Weights, KV cache and buffers",
            needed=needed,
            free=free_memory,
            most=total_memory if hopeless else None,
            longest=longest or None,
        )
    ]


def video_memory(
    model: GgufInfo,
    resolved: Resolution,
    server: ServerCapabilities,
    gpus: Sequence[Gpu],
    state: MachineState,
    shape: ModelShape | None = None,
) -> list[Finding]:
    """Return findings on the VRAM of a start on GPUs alone; the split of layers is an estimate."""
    if not gpus or _partly(model, resolved):
        return []
    devices = [Device(gpu.name, gpu.memory_total, gpu.memory_total - gpu.memory_free) for gpu in gpus]
    needs = llamacpp_needs(model, resolved, devices, server.choice, cpu=False, shape=shape)
    if needs is None or needs.needed <= needs.budget:
        return []
    total = min(gpu.memory_total for gpu in gpus)
    hopeless = sum(part.low for part in needs.parts) + needs.kv > total
    return [
        finding(
            "vram_short/llama.cpp",
            severity=Severity.ERROR if hopeless else Severity.WARNING,
            needed=needs.needed,
            room=needs.budget,
            gpus=len(gpus),
            held="" if hopeless and not state.holders else held_by(state.holders),
            model=model.path,
        )
    ]


def needs(
    model: GgufInfo,
    resolved: Resolution,
    server: ServerCapabilities,
    found: FoundMemory,
    total_memory: int,
    shape: ModelShape | None = None,
) -> list[DeviceNeed]:
    """Return the memory that a start is planned to take; where layers lie on both it is not known."""
    if not server.devices or not found.gpus or resolved["gpu_layers"] == 0:
        memory = (main_memory(found.main, total_memory),)
        planned = llamacpp_needs(model, resolved, memory, server.choice, shape=shape)
        return [DeviceNeed(device=MAIN_MEMORY, bytes=None if planned is None else planned.needed)]
    planned = None
    if not _partly(model, resolved):
        devices = [
            Device(gpu.name, gpu.memory_total, gpu.memory_total - gpu.memory_free) for gpu in found.gpus
        ]
        planned = llamacpp_needs(model, resolved, devices, server.choice, cpu=False, shape=shape)
    each = None if planned is None else planned.needed
    return [DeviceNeed(device=gpu.uuid, bytes=each) for gpu in found.gpus]


def _partly(model: GgufInfo, resolved: Resolution) -> bool:
    """Return True where some layers stay in main memory."""
    return resolved["gpu_layers"] is not None and 0 <= int(resolved["gpu_layers"]) < (model.layers or 1)


def _context(model: GgufInfo, resolved: Resolution) -> list[Finding]:
    asked = resolved.asked_beyond("context")
    if asked is not None:
        return [
            finding(
                "context_beyond_training/llama.cpp",
                settings={"context": model.context},
                trained=model.context,
                context=asked,
            )
        ]
    return []


def _speculation(model: GgufInfo, resolved: Resolution) -> list[Finding]:
    wants_mtp = "draft-mtp" in str(resolved["speculation"])
    if wants_mtp and not model.mtp_layers:
        return [finding("no_mtp_layer", settings={"speculation": "off"})]
    if model.mtp_layers and resolved["speculation"] == "off":
        return [finding("mtp_available", settings={"speculation": "draft-mtp"}, speculation="draft-mtp")]
    return []
