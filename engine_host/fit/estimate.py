"""One start on one machine: its parts, whether they fit, and why not."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine_host.core.sizes import size_text
from engine_host.fit import llamacpp, vllm
from engine_host.fit.kv import TURBOQUANT
from engine_host.fit.parts import Basis, Part
from engine_host.fit.shapes.model import Layer
from engine_host.fit.start import Model, Start
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.fit import Verdict
from engine_host.protocol.launch.plans import EngineKind

# Where a model does not say how long it may be.
LONGEST = 1 << 20
# By part: the factor that measured starts taught.
Corrections = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Blocker:
    """Why this cannot run here, whatever its size."""

    reason: Reason
    why: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes on the fullest device: `parts` without the KV cache, `kv` for all streams at full length.

    `budget` is the memory that the engine may use, `kv_budget` the part of it for the KV cache; `reserved` of
    that is taken at the start whatever is needed, None where the cache takes what its streams need.
    """

    start: Start
    parts: tuple[Part, ...]
    kv: int
    kv_one: int
    budget: int
    kv_budget: int
    verdict: Verdict
    why: str = ""
    reserved: int | None = None

    @property
    def fixed(self) -> int:
        """Bytes of everything but the KV cache."""
        return sum(part.bytes for part in self.parts)

    @property
    def cache(self) -> int:
        """Bytes that the KV cache takes of the device."""
        return self.kv if self.reserved is None else self.reserved

    @property
    def needed(self) -> int:
        """Bytes of everything."""
        return self.fixed + self.cache

    @property
    def spare(self) -> int:
        """Bytes that are left when all streams are at full length; below 0 what they lack."""
        left = self.budget - self.needed
        return left if self.reserved is None else min(left, self.reserved - self.kv)


def blocker(model: Model, start: Start) -> Blocker | None:
    """Return the reason that rules this start out, or None."""
    shape, vllm_runs = model.shape, start.engine is EngineKind.VLLM
    if vllm_runs is (model.format == "GGUF"):
        other = "llama.cpp" if vllm_runs else "vLLM"
        return Blocker(Reason.UNSUPPORTED, f"{start.engine.value} does not read this format; {other} does.")
    if not start.devices:
        return Blocker(Reason.ENGINE_UNUSABLE, "There is no GPU to compute for.")
    if start.lacking:
        there = len(start.devices) - start.lacking
        are = "there is 1" if there == 1 else f"there are {there}"
        return Blocker(Reason.ENGINE_UNUSABLE, f"It needs {len(start.devices)} GPUs; {are}.")
    if vllm_runs and beyond_training(model, start):
        return Blocker(Reason.CONTEXT_TOO_LONG, f"The model has positions for {model.context:,} tokens.")
    if not vllm_runs:
        return None
    gpus = start.tensor_parallel
    if shape.heads % gpus:
        return Blocker(
            Reason.SETTING_INVALID, f"{shape.heads} attention heads cannot be shared among {gpus} GPUs."
        )
    if start.kv not in TURBOQUANT:
        return None
    if start.cpu:
        return Blocker(Reason.KV_CACHE_UNSAFE, "vLLM's CPU build corrupts a TurboQuant cache.")
    if shape.latent is not None or shape.count(Layer.SLIDING) or shape.count(Layer.CHUNKED):
        kind = "latent attention" if shape.latent is not None else "sliding windows"
        return Blocker(Reason.KV_TYPE_UNSUPPORTED, f"TurboQuant does not work with {kind}.")
    return None


def estimate(model: Model, start: Start, corrections: Corrections | None = None) -> Estimate:
    """The parts of a start and their verdict; call it for a start without a blocker.

    Raises HostError(kv_type_unsupported).
    """
    if start.engine is EngineKind.VLLM:
        pool = vllm.pool(model, start)
        return _compared(start, _parts(model, start, corrections), pool.stream_bytes(start.context))
    kv = llamacpp.kv_bytes(model, start)
    kv_one = kv if start.streams == 1 else llamacpp.kv_bytes(model, dataclasses.replace(start, streams=1))
    return _compared(start, _parts(model, start, corrections), kv_one, kv)


def _parts(model: Model, start: Start, corrections: Corrections | None) -> tuple[Part, ...]:
    engine = vllm if start.engine is EngineKind.VLLM else llamacpp
    return tuple(_corrected(part, corrections or {}) for part in engine.parts(model, start))


def _compared(start: Start, parts: tuple[Part, ...], kv_one: int, of_all: int | None = None) -> Estimate:
    """Compare with the memory; `of_all` is the cache of all streams where that is not a multiple of one."""
    engine = vllm if start.engine is EngineKind.VLLM else llamacpp
    kv = kv_one * start.streams if of_all is None else of_all
    budget = vllm.budget(start, parts) if engine is vllm else min(device.free for device in start.devices)
    fixed, highest = sum(part.bytes for part in parts), sum(part.high for part in parts)
    reserved = vllm.reserved(start, kv) if engine is vllm else None
    kv_budget = max(budget - fixed, 0) if reserved is None else reserved
    # What has to be there at the start: of vLLM's streams one, and what it reserves.
    least = kv if engine is llamacpp else kv_one
    short = max(fixed + (least if reserved is None else reserved) - budget, least - kv_budget)
    verdict, why = Verdict.FITS, ""
    if short > 0:
        verdict = Verdict.DOES_NOT_FIT
        why = f"{size_text(short)} are missing."
    elif kv > kv_budget:
        # vLLM starts all the same; streams wait for blocks, or are put off.
        verdict = Verdict.TIGHT
        at_once = kv_budget // max(kv_one, 1)
        have = "has" if at_once == 1 else "have"
        why = f"At full length {at_once} of {start.streams} streams {have} room at a time."
    elif highest + (kv if reserved is None else reserved) > budget:
        verdict = Verdict.TIGHT
        why = "It fits, but not when every estimate is at its upper end."
    return Estimate(start, parts, kv, kv_one, budget, kv_budget, verdict, why, reserved)


def holds(found: Estimate) -> bool:
    """Return True if the KV cache holds all streams at full length."""
    return found.verdict is not Verdict.DOES_NOT_FIT and found.kv <= found.kv_budget


def beyond_training(model: Model, start: Start) -> bool:
    """Return True if a stream is to get more tokens than the model was trained for.

    vLLM does not start then; llama.cpp does, and gives each stream what the model was trained for.
    """
    return bool(model.context) and start.context > (model.context or 0) and not model.rope_scaled


def largest_context(model: Model, start: Start, corrections: Corrections | None = None) -> int:
    """The longest context that all streams of this start can have; 0 when there is none."""

    longer = functools.partial(dataclasses.replace, start)
    if start.engine is EngineKind.VLLM:
        # Of a start of vLLM no part depends on the context, nor do its blocks: only how many a stream needs.
        parts, pool = _parts(model, start, corrections), vllm.pool(model, start)

        def fits(context: int) -> bool:
            return holds(_compared(longer(context=context), parts, pool.stream_bytes(context)))
    else:

        def fits(context: int) -> bool:
            return holds(estimate(model, longer(context=context), corrections))

    return _most(model.context or LONGEST, fits)


def most_streams(model: Model, start: Start, corrections: Corrections | None = None) -> int:
    """The most streams of this context, up to 4096; 0 when not even one fits.

    0 too where the model was trained for less: no number of them is of use.
    """
    if beyond_training(model, start):
        return 0

    def fits(streams: int) -> bool:
        return holds(estimate(model, dataclasses.replace(start, streams=streams), corrections))

    return _most(4096, fits)


def _most(limit: int, fits_at: Callable[[int], bool]) -> int:
    """Return the largest number up to `limit` that fits, where less never needs more; 0 for none."""
    # Mostly all fit or none does: that takes one or two estimates, not eighteen.
    if limit < 1 or not fits_at(1):
        return 0
    if fits_at(limit):
        return limit
    fits, fails = 1, limit
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if fits_at(middle):
            fits = middle
        else:
            fails = middle
    return fits


def _corrected(part: Part, corrections: Corrections) -> Part:
    # One figure for all estimates together is what vLLM lets one measure on a GPU.
    factor = corrections.get(part.name, None if part.beyond else corrections.get("estimates"))
    if factor is None or part.basis is not Basis.ESTIMATE:
        return part
    # What was measured narrows the band to a tenth.
    size = round(part.bytes * factor)
    low, high = round(size * 0.9), round(size * 1.1)
    return Part(part.name, size, low, high, Basis.MEASURED, part.about, part.beyond)
