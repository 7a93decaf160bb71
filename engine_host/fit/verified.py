"""Predicted and measured side by side after a start, and what is learnt from the difference."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median

from engine_host.fit import vllm
from engine_host.fit.estimate import estimate
from engine_host.fit.parts import DRAFT_HEAD, Basis
from engine_host.fit.start import Model, Start
from engine_host.protocol.launch.fit import KV_TOKENS, Correction, Measured
from engine_host.protocol.launch.plans import EngineKind

# Beyond this a measurement tells of something else than the estimate: another process, a swapped-out page.
_LEAST, _MOST = 0.25, 4.0
# llama.cpp's names of its buffers, and the parts that they are.
_BUFFERS = {
    "model": "weights",
    "KV": "KV cache",
    "recurrent state": "states",
    "compute": "compute",
    "output": "output",
}
REST = "estimates"


@dataclass(frozen=True, slots=True)
class CorrectionScope:
    """The scope of a correction: a GPU (or processor), an engine, its version, its set of patches.

    For llama.cpp, whose buffers tell of their own start alone, also the model and the start.
    """

    gpu: str
    engine: str
    version: str
    patches: str
    model: str = ""
    start: str = ""


@dataclass(frozen=True, slots=True)
class LoggedMemory:
    """The memory figures in an engine's log: bytes of buffers by its own names, tokens of its KV cache."""

    buffers: Mapping[str, int]
    kv_tokens: int | None = None


def compare(
    model: Model, start: Start, logged: LoggedMemory, scope: CorrectionScope, at: float
) -> tuple[Measured, ...]:
    """Compare the parts that an engine logged with their prediction; none if it logged none."""
    if start.engine is EngineKind.VLLM:
        start = replace(start, version=scope.version)
    found = estimate(model, start)
    predicted = {part.name: part.bytes for part in found.parts}
    predicted["KV cache"] = found.kv
    if start.engine is EngineKind.LLAMA_CPP:
        pairs = _llamacpp(predicted, logged.buffers)
    else:
        pairs = _vllm(model, start, logged)
        if not start.cpu and {"model", "KV"} <= set(logged.buffers):
            whole = min(vllm.share(device, start) for device in start.devices)
            rest = whole - logged.buffers["model"] - logged.buffers["KV"]
            # Where the patch found that it cannot copy the head, nothing was taken.
            rest -= logged.buffers.get(DRAFT_HEAD, 0)
            estimates = (part for part in found.parts if part.basis is Basis.ESTIMATE and not part.beyond)
            pairs[REST] = (sum(part.bytes for part in estimates), rest)
    return tuple(
        Measured(
            at=at,
            engine=scope.engine,
            version=scope.version,
            gpu=scope.gpu,
            patches=scope.patches,
            model=model.name,
            part=part,
            predicted=expected,
            measured=measured,
            start=start_words(start),
        )
        for part, (expected, measured) in pairs.items()
        if measured > 0
    )


def start_words(start: Start) -> str:
    """A start by the settings that its buffers depend on; equal for starts that are alike."""
    kinds = start.kv if start.kv == start.kv_v else f"{start.kv} and {start.kv_v}"
    drafts = f", {start.draft_tokens} drafts" if start.drafting else ""
    vectors = ", embeddings" if start.embeddings else ""
    return f"{start.streams:,} × {start.context:,} tokens, KV {kinds}{drafts}{vectors}"


def corrections(measured: Iterable[Measured], scope: CorrectionScope) -> tuple[Correction, ...]:
    """Return the median of measured over predicted, by part, of the starts within the same scope."""
    ratios: dict[str, list[float]] = {}
    for one in measured:
        if (one.gpu, one.engine, one.version, one.patches) != (
            scope.gpu,
            scope.engine,
            scope.version,
            scope.patches,
        ):
            continue
        if scope.engine == EngineKind.LLAMA_CPP and (one.model, one.start) != (scope.model, scope.start):
            continue
        if one.predicted > 0:
            ratios.setdefault(one.part, []).append(one.measured / one.predicted)
    return tuple(
        Correction(part=part, factor=round(median(found), 4), n=len(found))
        for part, found in sorted(ratios.items())
        if _LEAST <= median(found) <= _MOST
    )


def _llamacpp(predicted: Mapping[str, int], buffers: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    measured: dict[str, int] = {}
    for name, size in buffers.items():
        kind = next((part for ending, part in _BUFFERS.items() if name.endswith(f" {ending}")), None)
        # A drafting context that shares the model's weights says nothing of them.
        if kind is not None and not (kind == "weights" and name.startswith("draft ")):
            measured[kind] = measured.get(kind, 0) + size
    return {part: (predicted[part], size) for part, size in measured.items() if part in predicted}


def _vllm(model: Model, start: Start, logged: LoggedMemory) -> dict[str, tuple[int, int]]:
    pairs: dict[str, tuple[int, int]] = {}
    # vLLM rounds its figure to ten mebibytes, which says nothing of a tiny model.
    if (weights := logged.buffers.get("model", 0)) > 64 << 20:
        each = -(-vllm.loaded_weights(model, start) // start.tensor_parallel)
        pairs["weights"] = (each, weights)
    cache = logged.buffers.get("KV")
    if cache and logged.kv_tokens:
        pairs[KV_TOKENS] = (vllm.pool(model, start).tokens(cache, start.context), logged.kv_tokens)
    return pairs
