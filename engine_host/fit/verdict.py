"""Whether a start fits a GPU, how far it could go, and what would make it fit."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from engine_host.fit.parts import Part, Start, fixed_parts, kv_part
from engine_host.fit.shape import ModelShape


class Verdict(StrEnum):
    """`tight`: only if every part that is estimated comes out no larger than its estimate."""

    FITS = "fits"
    TIGHT = "tight"
    NO = "does not fit"


class FitReason(StrEnum):
    """Why it does not fit."""

    WEIGHTS = "weights_exceed_memory"
    CACHE = "no_room_for_one_stream"
    STREAMS = "no_room_for_all_streams"


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of one GPU in bytes; `taken` by others, without what is about to be replaced."""

    total: int
    taken: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """One setting that would make it fit, and what it costs in words."""

    setting: str
    value: object
    costs: str


@dataclass(frozen=True, slots=True)
class Fit:
    """The answer for one GPU of a start; bytes. `need` is what the asked streams take of `room`."""

    verdict: Verdict
    reason: FitReason | None
    parts: tuple[Part, ...]
    budget: int
    room: int
    room_at_worst: int
    need: int
    longest: int
    most_streams: int
    changes: tuple[Change, ...] = ()


def fit(shape: ModelShape, start: Start, memory: Memory, limit: int) -> Fit:
    """The verdict for a start on GPUs like this one; `limit` is the context the model was trained for."""
    found = _look(shape, start, memory, limit)
    if found.verdict is Verdict.FITS:
        return found
    return replace(found, changes=tuple(_changes(shape, start, memory, limit, found)))


def _look(shape: ModelShape, start: Start, memory: Memory, limit: int) -> Fit:
    fixed = fixed_parts(shape, start)
    # vLLM takes its share of the whole memory, and refuses to start where so much is not free.
    budget = min(int(memory.total * start.gpu_memory), memory.total - memory.taken)
    room = budget - sum(part.bytes for part in fixed)
    worst = budget - sum(part.high for part in fixed)
    pool = start.pool(shape)
    one = pool.stream_blocks(start.context) * pool.block_bytes
    need = one * start.streams
    verdict, reason = Verdict.FITS, None
    if room < one:
        weights = next(part for part in fixed if part.name == "weights")
        reason = FitReason.WEIGHTS if weights.bytes >= budget else FitReason.CACHE
        verdict = Verdict.NO
    elif room < need:
        verdict, reason = Verdict.NO, FitReason.STREAMS
    elif worst < need:
        verdict = Verdict.TIGHT
    usable = max(0, room)
    return Fit(
        verdict,
        reason,
        (*fixed, kv_part(shape, start, usable)),
        budget,
        room,
        worst,
        need,
        pool.longest(usable, start.streams, limit),
        pool.streams(usable, start.context),
    )


def _changes(shape: ModelShape, start: Start, memory: Memory, limit: int, found: Fit) -> Iterator[Change]:
    """Single changes that lead to a better verdict, those that cost the person least first."""
    better = {Verdict.NO: {Verdict.TIGHT, Verdict.FITS}, Verdict.TIGHT: {Verdict.FITS}}[found.verdict]

    def helps(changed: Start) -> bool:
        return _look(shape, changed, memory, limit).verdict in better

    for share in (0.94, 0.96):
        if share > start.gpu_memory and helps(replace(start, gpu_memory=share)):
            yield Change("gpu_memory", share, "less is left for a desktop and for other programs")
            break
    if start.batched_tokens > 1024 and helps(replace(start, batched_tokens=1024)):
        yield Change("batched_tokens", 1024, "long prompts are read in smaller steps, a little slower")
    for name, costs in (
        ("fp8", "half the bytes; hardly any loss of quality"),
        ("turboquant_k8v4", "a good third of the bytes; needs the patches of this program to be fast"),
    ):
        if start.kv_cache_dtype == "auto" and helps(replace(start, kv_cache_dtype=name)):
            yield Change("kv_cache_dtype", name, costs)
    streams = next((n for n in range(start.streams - 1, 0, -1) if helps(replace(start, streams=n))), None)
    if streams is not None:
        yield Change("streams", streams, "more requests wait for their turn")
    context = _longest_that_helps(start, helps)
    if context:
        yield Change("context", context, "longer conversations are refused")
    if not start.eager and helps(replace(start, eager=True)):
        yield Change("eager", True, "no CUDA graphs: decode of few streams is much slower")
    for tp in (2, 4, 8):
        if tp > start.tp and helps(replace(start, tp=tp)):
            yield Change("tensor_parallel", tp, f"{tp} GPUs of this kind")
            break


def _longest_that_helps(start: Start, helps: Callable[[Start], bool]) -> int:
    helped, not_helped = 0, start.context
    while not_helped - helped > 256:
        middle = (helped + not_helped) // 2 // 256 * 256
        if middle in {helped, not_helped}:
            break
        if helps(replace(start, context=middle)):
            helped = middle
        else:
            not_helped = middle
    return helped
