"""Findings about TurboQuant's kernels: which run, and what is refused since it would answer wrongly.

Our kernels read and write the cache, or vLLM's own do. Those answer wrongly with drafts (docs/kernels.md), so
such a start is refused where ours cannot be used. What the plan cannot know, the engine finds out at its
start, and ends (`decision.py` of the patch).
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine_host.core.findings.table import finding
from engine_host.engines.vllm.command import TURBOQUANT, speculation_method
from engine_host.launch.dependencies import Environment
from engine_host.launch.resolution import Resolution
from engine_host.library.checkpoint import CheckpointInfo
from engine_host.protocol.bench.proofs import Proof, ProofVerdict, ProveKernels
from engine_host.protocol.errors import Action, Fix
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.operations.table import PROVE
from engine_host.protocol.patches import PatchReason, PlannedPatches

PATCH = "turboquant-grouped-attention"
# The limits of the kernels; a test compares them with those in the patch.
KV_TYPES = ("turboquant_k8v4", "turboquant_4bit_nc")
HEAD_SIZES = (64, 128, 256)
MOST_ROWS = 64
MOST_DRAFTS = 7
_HOPPER = "9."
# From here on FlashInfer reads a KV cache in fp8; others measured it on SM 8.6 (docs/figures.md).
_FP8 = (8, 0)
# Where they were seen to be right in an engine, as they are now: vLLM, a word of the GPU's name, KV type
# (docs/proof.md).
PROVEN = frozenset(
    {
        ("0.32.0", "H200", "turboquant_k8v4"),
        ("0.32.0", "H200", "turboquant_4bit_nc"),
        ("0.32.0", "H100", "turboquant_k8v4"),
        ("0.32.0", "H100", "turboquant_4bit_nc"),
    }
)


@dataclass(frozen=True)
class _WayOut:
    """The nearest start that is right: the finding that says so, and its settings."""

    finding: str
    settings: Mapping[str, Any]


def kernel_findings(
    info: CheckpointInfo,
    resolved: Resolution,
    environment: Environment,
    gpus: Sequence[Gpu],
    planned: PlannedPatches,
    proofs: Sequence[Proof | None] = (),
) -> Iterator[Finding]:
    """Yield what is to be said of the kernels of a start with TurboQuant.

    `gpus` are those of the start, `proofs` what was found here on each of them.
    """
    kind = str(resolved["kv_cache_dtype"])
    if environment.build != "cuda" or not kind.startswith(TURBOQUANT) or not gpus:
        return
    unsuited = _unsuited(info, resolved)
    speculation = speculation_method(str(resolved["speculation"]))
    disproved = _disproved(proofs)
    why = _left_out(planned) or unsuited or (disproved if speculation is not None else "")
    if why and speculation is None:
        yield finding("turboquant_stock", why=why, patch=PATCH)
    elif why and resolved["allow_wrong_answers"]:
        yield finding("turboquant_speculation/allowed", why=why, speculation=speculation)
    elif why:
        way = _way_out(resolved, gpus, planned, unsuited)
        yield finding(
            way.finding,
            settings=way.settings,
            evidence={"patch": PATCH, "kv_cache_dtype": kind},
            why=why,
            speculation=speculation,
        )
    elif disproved:
        yield finding("turboquant_kernels/wrong", why=disproved)
    else:
        names = sorted({gpu.name for gpu in gpus})
        new = [name for name in names if not _proven(environment.version, name, kind)]
        hopper = all((gpu.compute_capability or "").startswith(_HOPPER) for gpu in gpus)
        kernels = "for Hopper" if hopper and kind == KV_TYPES[0] else "for every GPU"
        held = [one for one in proofs if one is not None and one.verdict is ProofVerdict.RIGHT]
        if held and len(held) == len(gpus) and not any(one.stale for one in held):
            yield finding(
                "turboquant_kernels/here",
                kernels=kernels,
                gpus=names,
                date=_day(held[0]),
                figures=held[0].summary(),
                vllm=environment.version,
            )
            return
        if not new:
            yield finding(
                "turboquant_kernels",
                kernels=kernels,
                gpus=names,
                kv_cache_dtype=kind,
                vllm=environment.version,
            )
            return
        before = next((one for one in proofs if one is not None), None)
        first = next(gpu for gpu in gpus if gpu.name in new)
        yield finding(
            "turboquant_kernels/unproven",
            fix=_prove(ProveKernels(gpu=first.uuid, installation=environment.id, kv_cache_dtype=kind)),
            kernels=kernels,
            gpus=new,
            kv_cache_dtype=kind,
            vllm=environment.version,
            before=None if before is None else _before(before),
        )


def _prove(asked: ProveKernels) -> Fix:
    """A click, or a command, that proves the kernels on one GPU."""
    action = Action(method="POST", path=PROVE.path, body=asked.model_dump())
    return Fix(text="", command=asked.command, action=action)


def _disproved(proofs: Sequence[Proof | None]) -> str:
    """The proof that failed on one of the GPUs and still holds; empty if there is none."""
    for one in proofs:
        if one is not None and one.verdict is ProofVerdict.WRONG and not one.stale:
            return f"the proof on {one.gpu} of {_day(one)} failed, {one.why}"
    return ""


def _before(proof: Proof) -> str:
    """The newest proof of a GPU, and why it does not hold for this start."""
    said = proof.summary() if proof.verdict is ProofVerdict.RIGHT else proof.why
    return f"{_day(proof)}: {said}" + (f", but {proof.stale}" if proof.stale else "")


def _day(proof: Proof) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(proof.at))


def _left_out(planned: PlannedPatches) -> str:
    """Why the patch with the kernels is no part of the start; empty if it is."""
    if PATCH in planned.chosen:
        return ""
    decision = next((one for one in planned.left_out if one.patch == PATCH), None)
    detail = decision.detail if decision is not None else "it is not there"
    return f"the patch {PATCH} is left out: {detail}"


def _unsuited(info: CheckpointInfo, resolved: Resolution) -> str:
    """Name the property of a start that the kernels were not written for; empty if none is known."""
    method, drafts = speculation_method(str(resolved["speculation"])), _drafts(resolved)
    if method is not None and drafts > MOST_DRAFTS:
        return f"{drafts} draft tokens are more than {MOST_DRAFTS}"
    if method == "draft_model":
        return "a draft model of its own"
    if str(resolved["dtype"]) in {"float32", "float"}:
        return "activations are of 32 bits"
    if info.head_dim is not None and info.head_dim not in HEAD_SIZES:
        return f"heads of {info.head_dim} are none of {', '.join(map(str, HEAD_SIZES))}"
    if info.heads and info.kv_heads:
        parallel = int(resolved["tensor_parallel"])
        group = max(1, info.heads // parallel) // max(1, info.kv_heads // parallel)
        rows = max(1, group) * (1 + drafts if method is not None else 1)
        # Padded to a power of two, and 64 is one.
        if rows > MOST_ROWS:
            return f"{group} query heads a KV head times {1 + drafts} tokens are more than {MOST_ROWS}"
    return ""


def _drafts(resolved: Resolution) -> int:
    """The tokens drafted a step; a JSON of the person's own says them itself."""
    speculation = str(resolved["speculation"])
    if speculation.startswith("{"):
        said = json.loads(speculation).get("num_speculative_tokens")
        return said if isinstance(said, int) else 1
    return int(resolved["draft_tokens"] or 0)


def _way_out(resolved: Resolution, gpus: Sequence[Gpu], planned: PlannedPatches, unsuited: str) -> _WayOut:
    decision = next((one for one in planned.left_out if one.patch == PATCH), None)
    by_type = decision is not None and decision.reason is PatchReason.WRONG_KV_CACHE
    if by_type and not unsuited:
        return _WayOut("turboquant_speculation/4bit", {"kv_cache_dtype": KV_TYPES[1]})
    own_json = str(resolved["speculation"]).startswith("{")
    if PATCH in planned.chosen and _drafts(resolved) > MOST_DRAFTS and not own_json:
        return _WayOut("turboquant_speculation/drafts", {"draft_tokens": MOST_DRAFTS})
    if all(_capability(gpu) >= _FP8 for gpu in gpus):
        return _WayOut("turboquant_speculation/fp8", {"kv_cache_dtype": "fp8"})
    return _WayOut("turboquant_speculation/off", {"speculation": "off"})


def _capability(gpu: Gpu) -> tuple[int, ...]:
    return tuple(int(part) for part in (gpu.compute_capability or "0").split(".") if part.isdecimal())


def _proven(version: str, gpu: str, kind: str) -> bool:
    return any((version, word, kind) in PROVEN for word in gpu.split())
