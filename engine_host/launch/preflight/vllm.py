"""Checks before a start of vLLM; each finding says what to do, and an error stops the start."""

import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from engine_host.engines.vllm.command import speculation_method
from engine_host.engines.vllm.pins import current, install_fix
from engine_host.fit import vllm
from engine_host.fit.estimate import Estimate
from engine_host.fit.kv import TURBOQUANT
from engine_host.fit.start import Device
from engine_host.launch.dependencies import Environment
from engine_host.launch.memory import main_memory, vllm_model, vllm_needs, vllm_start
from engine_host.launch.plans.vllm_defaults import Machine, breaks_prefix_caching
from engine_host.launch.resolution import Resolution
from engine_host.library.checkpoint import CheckpointInfo
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.plans import Finding, Layer

_GIB = 2**30
# It gives drafted tokens the temperature of their request, which the CPU build loses.
_SAMPLING_PATCH = "cpu-speculation-sampling"
# It tells 0.26's newer runner, which hybrids get, of TurboQuant's cache.
_SHAPE_PATCH = "turboquant-hybrid-cache-shape"
# Its kernels give a row the same bits in every batch; vLLM's own for TurboQuant do not.
_INVARIANT_PATCH = "turboquant-grouped-attention"


def findings(
    info: CheckpointInfo,
    resolved: Resolution,
    environment: Environment,
    machine: Machine,
    total_memory: int,
    patches: Collection[str],
) -> list[Finding]:
    """What is worth knowing before this start; memory in bytes, the replaced engine's counted as free.

    `patches` are the ids of those that are applied.
    """
    found = [*_context(info, resolved), *_speculation(info, resolved, environment), *_model(info, resolved)]
    if environment.build == "cpu":
        found += _ram(info, resolved, environment, machine, total_memory)
        found += _sampling(resolved, patches)
        found.append(
            Finding(
                id="cpu_build",
                severity=Severity.INFO,
                message="vLLM runs on the processor here: good for trying things out, slow for work.",
                fix=Fix(text="For work on a processor take a GGUF file, which llama.cpp runs faster."),
            )
        )
    else:
        found += _hybrid_cache(info, resolved, environment, patches)
        found += _invariance(info, resolved, patches)
        found += _gpus(resolved, machine) or _vram(info, resolved, environment, machine)
    return found


def _ram(
    info: CheckpointInfo, resolved: Resolution, environment: Environment, machine: Machine, total: int
) -> list[Finding]:
    devices = (main_memory(machine.free_memory, total),)
    found = _kv_cache(info, resolved, environment, devices)
    needs = _needs(info, resolved, environment, devices)
    kv = int(float(resolved["kv_cache_gib"]) * _GIB)
    weights = info.size if needs is None else _size(needs, "weights")
    needed = kv + (info.size if needs is None else needs.fixed)
    if needed <= machine.free_memory:
        return found
    hopeless = needed > total
    found.append(
        Finding(
            id="memory_short",
            severity=Severity.ERROR if hopeless else Severity.WARNING,
            reason=Reason.OUT_OF_MEMORY,
            message=(
                f"Weights, KV cache and vLLM's processes want about {needed / _GIB:.1f} GiB (estimated); "
                f"{machine.free_memory / _GIB:.1f} GiB are free"
                + (f", and this machine has {total / _GIB:.1f} GiB in all." if hopeless else ".")
            ),
            fix=Fix(text="Take a smaller KV cache (kv_cache_gib) or a smaller model."),
            evidence={"weights": weights, "kv_cache": kv, "free": machine.free_memory, "total": total},
        )
    )
    return found


def _needs(
    info: CheckpointInfo, resolved: Resolution, environment: Environment, devices: Sequence[Device]
) -> Estimate | None:
    model = vllm_model(info)
    start = vllm_start(resolved, environment.build, devices, environment.version)
    return None if model is None else vllm_needs(model, start)


def _size(needs: Estimate, name: str) -> int:
    return next(part.bytes for part in needs.parts if part.name == name)


def _kv_cache(
    info: CheckpointInfo, resolved: Resolution, environment: Environment, devices: Sequence[Device]
) -> list[Finding]:
    """vLLM refuses to start when one request of full length does not fit."""
    needs = _needs(info, resolved, environment, devices)
    model, context = vllm_model(info), int(resolved["context"])
    if needs is None or model is None or resolved["kv_cache_gib"] is None or needs.kv_one <= needs.kv_room:
        return []
    fits = vllm.pool(model, needs.start).longest(needs.kv_room, 1, context)
    return [
        Finding(
            id="kv_cache_small",
            severity=Severity.ERROR,
            reason=Reason.OUT_OF_MEMORY,
            message=f"A KV cache of {resolved['kv_cache_gib']} GiB holds about {fits} tokens, not {context}.",
            fix=Fix(text="Take a larger KV cache (kv_cache_gib) or a shorter context."),
            evidence={"kv_cache_gib": resolved["kv_cache_gib"], "tokens": fits, "context": context},
        )
    ]


def _gpus(resolved: Resolution, machine: Machine) -> list[Finding]:
    if not machine.gpus:
        return [
            Finding(
                id="no_gpu",
                severity=Severity.ERROR,
                reason=Reason.ENGINE_UNUSABLE,
                message="This build of vLLM needs an NVIDIA GPU, and none is here.",
                fix=install_fix(current("cpu"), "Install the CPU build."),
            )
        ]
    wanted = int(resolved["tensor_parallel"])
    if wanted <= len(machine.gpus):
        return []
    return [
        Finding(
            id="too_few_gpus",
            severity=Severity.ERROR,
            reason=Reason.SETTING_INVALID,
            message=f"tensor_parallel is {wanted}, but this machine has {len(machine.gpus)} GPU(s).",
            fix=Fix(
                text=f"Set tensor_parallel to {len(machine.gpus)} or less.",
                settings={"tensor_parallel": len(machine.gpus)},
            ),
            evidence={"tensor_parallel": wanted, "gpus": len(machine.gpus)},
        )
    ]


def _vram(
    info: CheckpointInfo, resolved: Resolution, environment: Environment, machine: Machine
) -> list[Finding]:
    wanted = machine.chosen(int(resolved["tensor_parallel"]))
    devices = [Device(gpu.name, gpu.memory_total, 0, gpu.compute_capability) for gpu in wanted]
    found = _kv_cache(info, resolved, environment, devices)
    needs = _needs(info, resolved, environment, devices)
    room = min(int(gpu.memory_total * float(resolved["gpu_memory"])) for gpu in wanted)
    free = min(gpu.memory_total - gpu.memory_used for gpu in wanted)
    if needs is None:
        each = likely = least = info.size // len(wanted)
    else:
        each = _size(needs, "weights")
        # What lies beyond vLLM's share is not taken off it.
        shared = [part for part in needs.parts if not part.beyond]
        likely = sum(part.bytes for part in shared) + needs.kv_one
        least = sum(part.low for part in shared) + needs.kv_one
    # Only what is too much at the lower end of every estimate stops a start.
    hopeless = least > room
    if not hopeless and likely <= room and (machine.replaces or each <= free):
        return found
    beside = likely <= room
    evidence = {"weights": each, "needed": likely, "room": room, "free": free, "gpus": len(wanted)}
    found.append(
        Finding(
            id="vram_short",
            severity=Severity.ERROR if hopeless else Severity.WARNING,
            reason=Reason.OUT_OF_MEMORY,
            message=(
                f"The weights want about {each / _GIB:.1f} GiB on each GPU; {free / _GIB:.1f} GiB are free."
                if beside
                else f"Weights, buffers and one request of full length want about {likely / _GIB:.1f} GiB on "
                f"each GPU (estimated); {room / _GIB:.1f} GiB is vLLM's share of it."
            ),
            fix=Fix(
                text="Take a smaller or quantised model, a shorter context, or share it over more GPUs "
                "(tensor_parallel).",
                command=f"sndr fit {info.path}",
            ),
            evidence=evidence,
        )
    )
    return found


def _context(info: CheckpointInfo, resolved: Resolution) -> list[Finding]:
    # A model with stretched positions reaches further than it says, and vLLM works out how far.
    if not info.context or int(resolved["context"]) <= info.context or info.rope_scaled:
        return []
    return [
        Finding(
            id="context_beyond_training",
            severity=Severity.ERROR,
            reason=Reason.CONTEXT_TOO_LONG,
            message=f"The model has positions for {info.context:,} tokens; vLLM does not start beyond that.",
            fix=Fix(text=f"Set the context to {info.context} or less.", settings={"context": info.context}),
            evidence={"trained": info.context, "context": resolved["context"]},
        )
    ]


def _speculation(info: CheckpointInfo, resolved: Resolution, environment: Environment) -> list[Finding]:
    speculation = str(resolved["speculation"])
    method = speculation_method(speculation)
    if method == "mtp" and not info.mtp_layers:
        return [
            Finding(
                id="no_mtp_layer",
                severity=Severity.ERROR,
                reason=Reason.UNSUPPORTED,
                message="This model has no MTP layer, so it cannot draft for itself.",
                fix=Fix(text="Switch speculation off, or choose ngram.", settings={"speculation": "off"}),
            )
        ]
    if method is None and info.mtp_layers and not resolved["embeddings"]:
        return [
            Finding(
                id="mtp_available",
                severity=Severity.INFO,
                message="The model has an MTP layer: speculative decoding can be switched on.",
                fix=Fix(text="Set speculation to mtp and measure.", settings={"speculation": "mtp"}),
            )
        ]
    if not breaks_prefix_caching(info, speculation, environment.build):
        return []
    if resolved["prefix_caching"] and resolved.layer("prefix_caching") in {Layer.USER, Layer.OVERRIDE}:
        return [
            Finding(
                id="prefix_caching_breaks",
                severity=Severity.WARNING,
                message="MTP with prefix caching ends vLLM's CPU build at the first request to this model.",
                fix=Fix(text="Leave prefix_caching to the program, which switches it off here."),
            )
        ]
    return [
        Finding(
            id="prefix_caching_off",
            severity=Severity.INFO,
            message="Prefix caching is off: with MTP it ends vLLM's CPU build at the first request.",
            fix=Fix(text="Switch speculation off to have it.", settings={"speculation": "off"}),
            evidence={"kernel": "precopy_mamba_align_fused_kernel", "vllm": environment.version},
        )
    ]


def drafter_missing(wanted: str, downloads: Path) -> Finding:
    """The model that drafts is not on this machine; `downloads` is where fetched models belong."""
    words = ["hf", "download", wanted, "--local-dir", str(downloads / wanted)]
    return Finding(
        id="drafter_missing",
        severity=Severity.ERROR,
        reason=Reason.MODEL_FILE_MISSING,
        message=f"{wanted}, which drafts for this model, is not on this machine.",
        fix=Fix(
            text="Fetch it, then look for models again (`sndr models --scan`); or switch speculation off.",
            command=None if Path(wanted).is_absolute() else shlex.join(words),
        ),
        evidence={"drafter": wanted},
    )


def _sampling(resolved: Resolution, patches: Collection[str]) -> list[Finding]:
    if speculation_method(str(resolved["speculation"])) is None or _SAMPLING_PATCH in patches:
        return []
    return [
        Finding(
            id="speculation_samples_noise",
            severity=Severity.WARNING,
            reason=Reason.UNSUPPORTED,
            message="With speculation, vLLM's CPU build answers with noise at any temperature above 0.",
            fix=Fix(
                text=f"Leave the patch {_SAMPLING_PATCH} on, or ask with temperature 0.",
                command=f"sndr patches explain {_SAMPLING_PATCH}",
            ),
            evidence={"kernel": "vllm.utils.cpu_triton_utils._expand_kernel_impl"},
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
    return [
        Finding(
            id="turboquant_hybrid",
            severity=Severity.ERROR,
            reason=Reason.KV_TYPE_UNSUPPORTED,
            message=f"vLLM {environment.version} ends while it allocates a hybrid's TurboQuant cache.",
            fix=Fix(
                text=f"Leave the patch {_SHAPE_PATCH} on, or take another KV cache type.",
                command=f"sndr patches explain {_SHAPE_PATCH}",
            ),
            evidence={"kv_cache_dtype": kind, "vllm": environment.version},
        )
    ]


def _invariance(info: CheckpointInfo, resolved: Resolution, patches: Collection[str]) -> list[Finding]:
    if not resolved["batch_invariant"]:
        return []
    off = {"batch_invariant": False}
    if info.hybrid:
        return [
            Finding(
                id="invariance_of_hybrid",
                severity=Severity.ERROR,
                reason=Reason.UNSUPPORTED,
                message="vLLM has no batch-invariant mode for models with gated-delta or Mamba layers.",
                fix=Fix(text="Switch batch_invariant off.", settings=off),
                evidence={"layers": sorted(set(info.layer_types))},
            )
        ]
    kind = str(resolved["kv_cache_dtype"])
    if kind in TURBOQUANT and _INVARIANT_PATCH not in patches:
        return [
            Finding(
                id="invariance_of_turboquant",
                severity=Severity.ERROR,
                reason=Reason.UNSUPPORTED,
                message="vLLM's own TurboQuant kernels are not batch-invariant, and vLLM refuses the start.",
                fix=Fix(
                    text=f"Start with the patch {_INVARIANT_PATCH}, or switch batch_invariant off.",
                    command=f"sndr patches explain {_INVARIANT_PATCH}",
                    settings=off,
                ),
                evidence={"kv_cache_dtype": kind},
            )
        ]
    return []


def _model(info: CheckpointInfo, resolved: Resolution) -> list[Finding]:
    found: list[Finding] = []
    if info.shape and not resolved["dummy_weights"]:
        found.append(
            Finding(
                id="weights_missing",
                severity=Severity.ERROR,
                reason=Reason.MODEL_FILE_MISSING,
                message="This model is a config without weights; it runs with random ones alone.",
                fix=Fix(text="Leave dummy_weights on, or fetch the weights into its folder."),
            )
        )
    elif resolved["dummy_weights"]:
        found.append(
            Finding(
                id="dummy_weights",
                severity=Severity.INFO,
                message="The weights are random: speed and memory are real, the text means nothing.",
                fix=Fix(text="Put the weights beside its config.json to have answers."),
            )
        )
    if not info.tokenizer:
        found.append(
            Finding(
                id="no_tokenizer",
                severity=Severity.WARNING,
                message="The model has no tokenizer: it takes completions of token numbers, and no text.",
                fix=Fix(text="Put a tokenizer.json into the model's folder to use it with text."),
            )
        )
    elif not info.chat_template and not resolved["embeddings"]:
        found.append(
            Finding(
                id="no_chat_template",
                severity=Severity.WARNING,
                message="The model has no chat template: it answers completions, and no chats.",
                fix=Fix(text="Put its chat_template.jinja into the model's folder."),
            )
        )
    return found
