"""Checks before a start of llama.cpp; each finding says what to do, and an error stops the start."""

from collections.abc import Sequence

from engine_host.engines.llamacpp.servers import ServerCapabilities, build_fix
from engine_host.fit.shapes.model import ModelShape
from engine_host.fit.start import Device
from engine_host.launch.memory import llamacpp_longest, llamacpp_needs, main_memory
from engine_host.launch.preflight.machine import MachineState, free_vram, held_by
from engine_host.launch.resolution import Resolution
from engine_host.library.gguf import GgufInfo
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.plans import Finding, ServerChoice

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
    """What is worth knowing before this start; memory in bytes, the replaced engine's counted as free.

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
        found.append(
            Finding(
                id="prebuilt_server",
                severity=Severity.INFO,
                message="The prebuilt llama.cpp runs: it works at once, but uses no more than AVX2.",
                fix=build_fix("Build llama.cpp for this processor once."),
            )
        )
    return found


def _gpu_unused(model: GgufInfo, server: ServerCapabilities, gpus: Sequence[Gpu]) -> Finding:
    own = " Or set engine.server to built." if server.choice is ServerChoice.OWN else ""
    return Finding(
        id="gpu_unused",
        # A small model answers at once from anywhere.
        severity=Severity.WARNING if model.size >= _SMALL else Severity.INFO,
        message=f"{gpus[0].name} stays idle: this llama.cpp ({server.choice.value}, {server.label}) was "
        "built for the processor alone.",
        fix=build_fix(f"Build llama.cpp for the GPU once.{own}"),
        evidence={"gpus": len(gpus), "server": server.label},
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
        Finding(
            id="memory_short",
            severity=Severity.ERROR if hopeless else Severity.WARNING,
            reason=Reason.OUT_OF_MEMORY,
            message=(
                f"{'The weights alone' if kv is None else 'Weights, KV cache and buffers'} want about "
                f"{needed / 2**30:.1f} GiB (estimated); "
                f"{free_memory / 2**30:.1f} GiB are free"
                + (f", and this machine has {total_memory / 2**30:.1f} GiB in all." if hopeless else ".")
            ),
            fix=Fix(
                text="Take fewer streams, a shorter context, a smaller KV type or a smaller model."
                + (f" A context of {longest:,} tokens fits." if longest else "")
            ),
            evidence={"weights": model.size, "kv_estimate": kv, "free": free_memory, "total": total_memory},
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
    """What a start that lies on GPUs alone lacks there; how layers are split between them is an estimate."""
    partly = resolved["gpu_layers"] is not None and 0 <= int(resolved["gpu_layers"]) < (model.layers or 1)
    if not gpus or partly:
        return []
    devices = [Device(gpu.name, gpu.memory_total, gpu.memory_total - free_vram(gpu, state)) for gpu in gpus]
    needs = llamacpp_needs(model, resolved, devices, server.choice, cpu=False, shape=shape)
    if needs is None or needs.needed <= needs.room:
        return []
    total = min(gpu.memory_total for gpu in gpus)
    hopeless = sum(part.low for part in needs.parts) + needs.kv > total
    others = [holder for holder in state.holders if not holder.ours]
    return [
        Finding(
            id="vram_short",
            severity=Severity.ERROR if hopeless else Severity.WARNING,
            reason=Reason.OUT_OF_MEMORY,
            message=(
                f"Weights, KV cache and buffers want about {needs.needed / 2**30:.1f} GiB on each of "
                f"{len(gpus)} GPU(s) (estimated); {needs.room / 2**30:.1f} GiB are free. "
                + ("" if hopeless and not others else held_by(others))
            ).strip(),
            fix=Fix(
                text="Take a shorter context, fewer streams, a smaller KV type or a smaller model, or end "
                "what holds the memory.",
                command=f"sndr fit {model.path}",
            ),
            evidence={"needed": needs.needed, "room": needs.room, "gpus": len(gpus)},
        )
    ]


def _context(model: GgufInfo, resolved: Resolution) -> list[Finding]:
    if model.context and int(resolved["context"]) > model.context:
        return [
            Finding(
                id="context_beyond_training",
                severity=Severity.WARNING,
                message=(
                    f"The model was trained for {model.context:,} tokens; answers beyond that are poor."
                ),
                fix=Fix(
                    text=f"Set the context to {model.context} or less.", settings={"context": model.context}
                ),
                evidence={"trained": model.context, "context": resolved["context"]},
            )
        ]
    return []


def _speculation(model: GgufInfo, resolved: Resolution) -> list[Finding]:
    wants_mtp = "draft-mtp" in str(resolved["speculation"])
    if wants_mtp and not model.mtp_layers:
        return [
            Finding(
                id="no_mtp_layer",
                severity=Severity.ERROR,
                reason=Reason.UNSUPPORTED,
                message="This model file has no MTP layer, so it cannot draft for itself.",
                fix=Fix(
                    text="Switch speculation off, or choose an n-gram kind.", settings={"speculation": "off"}
                ),
            )
        ]
    if model.mtp_layers and resolved["speculation"] == "off":
        return [
            Finding(
                id="mtp_available",
                severity=Severity.INFO,
                message="The model has an MTP layer: speculative decoding can be switched on.",
                fix=Fix(
                    text="Set speculation to draft-mtp and measure.", settings={"speculation": "draft-mtp"}
                ),
            )
        ]
    return []
