"""Suggest changes with which a start fits, cheapest first and those that cost money last."""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

from engine_host.fit.estimate import (
    Blocker,
    Corrections,
    Estimate,
    beyond_training,
    blocker,
    estimate,
    holds,
)
from engine_host.fit.estimate import largest_context as longest
from engine_host.fit.estimate import most_streams as most
from engine_host.fit.offload import main_memory_read
from engine_host.fit.parts import GIB
from engine_host.fit.roofline import read_slowly
from engine_host.fit.shapes.tensors import formula_weights
from engine_host.fit.start import Model, Start
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import Change, Verdict
from engine_host.protocol.launch.plans import EngineKind

# From fine to coarse; the advisor says what each costs in quality.
KV_TYPES = {
    EngineKind.VLLM: ("auto", "fp8", "turboquant_k8v4", "turboquant_4bit_nc"),
    EngineKind.LLAMA_CPP: ("f16", "q8_0", "q5_1", "q4_0"),
}
_LESS_CHUNK = 1024
_SHORTEST = 1024
# A change: its id, its sentence, the fields of a question that make it, and the start and model after it.
_Asks = dict[str, bool | int | float | str]
_Candidate = tuple[str, str, _Asks, Start, Model]
# Of `sndr fit`, where an option has another name than its field.
_OPTIONS = {"tensor_parallel": "tp"}


def changes(
    model: Model,
    found: Estimate,
    corrections: Corrections | None = None,
    more: str = "",
    lighter: Sequence[Model] = (),
) -> tuple[Change, ...]:
    """Changes that save something: those that are enough alone first, in order of what they cost the person.

    None where it fits. `more` are the options that ask for twice as many GPUs; `lighter` the same model with
    smaller weights that the catalogue knows.
    """
    if holds(found):
        return ()
    listed = []
    chosen = _lighter(found.start, [one for one in lighter if one.format == model.format], corrections)
    elsewhere = [one for one in lighter if (one.format == "GGUF") is not (model.format == "GGUF")]
    for change_id, text, asks, start, other in _candidates(model, found.start, corrections, chosen):
        if blocker(other, start) is not None:
            continue
        after = estimate(other, start, corrections)
        gained = after.spare - found.spare
        if gained > 0:
            gpus = len(start.devices) if change_id == "gpus" else None
            option = more if change_id == "gpus" else options_of(asks)
            enough = holds(after) and not beyond_training(other, start)
            listed.append(
                Change(
                    id=change_id, text=text, saves=gained, fits=enough, option=option, asks=asks, gpus=gpus
                )
            )
    listed += _on_the_other_engine(found.start, elsewhere, corrections)
    # What costs money comes last of what is enough.
    return tuple(sorted(listed, key=lambda change: (not change.fits, change.id == "gpus")))


def ways_out(
    model: Model,
    start: Start,
    stopped: Blocker,
    others: Sequence[Model],
    corrections: Corrections | None = None,
) -> tuple[Change, ...]:
    """Changes with which what cannot run at all would: another variant or engine, or a shorter context."""
    if stopped.reason is Reason.CONTEXT_TOO_LONG and model.context:
        return (shorter(model, start, corrections),)
    if stopped.reason is not Reason.UNSUPPORTED:
        return ()
    listed = [
        Change(
            id="weights",
            text=tr("Take {variant}, which {engine} reads.", variant=other.name, engine=start.engine.value),
            saves=0,
            fits=holds(estimate(other, start, corrections)),
            asks={"model": other.name},
        )
        for other in others
        if blocker(other, start) is None
    ]
    if not listed:
        reads = EngineKind.VLLM if start.engine is EngineKind.LLAMA_CPP else EngineKind.LLAMA_CPP
        text = tr("Start it with {engine}, or take other files of the model.", engine=reads.value)
        listed = [Change(id="engine", text=text, saves=0, fits=False, option=f"--engine {reads.value}")]
    return tuple(sorted(listed, key=lambda change: not change.fits))


def shorter(model: Model, start: Start, corrections: Corrections | None = None) -> Change:
    """The context that the model was trained for, of a start that asks for more."""
    context = model.context or start.context
    before, after = (
        estimate(model, one, corrections) for one in (start, dataclasses.replace(start, context=context))
    )
    asks: _Asks = {"context": context}
    return Change(
        id="context",
        text=tr("Take a context of {tokens:,} tokens, which the model was trained for.", tokens=context),
        saves=max(after.spare - before.spare, 0),
        fits=holds(after),
        option=options_of(asks),
        asks=asks,
    )


def _on_the_other_engine(
    start: Start, others: Sequence[Model], corrections: Corrections | None
) -> Iterator[Change]:
    """The largest other variant that fits on the engine that reads it."""
    llama = start.engine is EngineKind.VLLM
    engine, kind = (EngineKind.LLAMA_CPP, "f16") if llama else (EngineKind.VLLM, "auto")
    there = dataclasses.replace(start, engine=engine, kv=kind, kv_v=kind)
    chosen = _lighter(there, others, corrections)
    if chosen is None:
        return
    found = estimate(chosen, there, corrections)
    if holds(found):
        text = tr("Take {variant} with {engine}.", variant=chosen.name, engine=engine.value)
        asks: _Asks = {"model": chosen.name}
        yield Change(id="engine", text=text, saves=max(found.spare, 0), fits=True, asks=asks)


def options_of(asks: Mapping[str, bool | int | float | str]) -> str:
    """Return the options of `sndr fit` that ask the same; another model is none."""
    words = []
    for field, value in asks.items():
        if field == "model":
            continue
        name = _OPTIONS.get(field, field).replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        else:
            words += [f"--{name}", f"{value:.12g}" if isinstance(value, float) else str(value)]
    return " ".join(words)


def _lighter(start: Start, known: Sequence[Model], corrections: Corrections | None) -> Model | None:
    """Of the known ones the largest that fits, else the smallest; None where none can run."""
    able = [other for other in known if blocker(other, start) is None]
    able.sort(key=lambda other: -other.weights.loaded(drafting=False))
    enough = (other for other in able if holds(estimate(other, start, corrections)))
    return next(enough, able[-1] if able else None)


def _caches(model: Model, start: Start, corrections: Corrections | None) -> Iterator[_Candidate]:
    """Suggest the configured KV cache as large as its streams need, or as the budget allows."""
    found = estimate(model, start, corrections)
    needed, most = math.ceil(found.kv / GIB), (found.budget - found.fixed) // GIB
    least = math.ceil(found.kv_one / GIB)
    gib = needed if needed <= most else most
    if gib >= max(least, 1):
        larger = gib * GIB > found.cache
        text = (
            tr("Reserve {gib} GiB for the KV cache.", gib=gib)
            if larger
            else tr("Reserve only {gib} GiB for the KV cache.", gib=gib)
        )
        yield "kv_cache", text, {"kv_cache_gib": gib}, dataclasses.replace(start, kv_cache=gib * GIB), model


def _offloads(model: Model, start: Start, corrections: Corrections | None) -> Iterator[_Candidate]:
    """Suggest the fewest experts or layers in main memory with which the rest fits."""
    layers = len(model.shape.layers)

    def first(starts: Sequence[Start]) -> Start | None:
        found = [(one, estimate(model, one, corrections)) for one in starts]
        surely = (one for one, after in found if after.verdict is Verdict.FITS)
        return next(surely, None) or next((one for one, after in found if holds(after)), None)

    def experts(number: int) -> Start:
        return dataclasses.replace(start, cpu_experts=number, gpu_layers=None)

    mixture = model.shape.experts is not None
    if mixture and (found := first([experts(number) for number in range(1, layers + 1)])) is not None:
        yield (
            "cpu_experts",
            tr(
                "Keep the experts of {layers} layers in main memory; {slower}.",
                layers=found.cpu_experts,
                slower=_slower(model, found),
            ),
            {"cpu_experts": found.cpu_experts},
            found,
            model,
        )
    most = min(start.gpu_layers if start.gpu_layers is not None and start.gpu_layers >= 0 else layers, layers)
    partly = [dataclasses.replace(start, gpu_layers=number) for number in range(most, 0, -1)]
    if (found := first(partly)) is not None and found.gpu_layers is not None:
        kept = layers + 1 - found.gpu_layers
        yield (
            "gpu_layers",
            tr(
                "Keep {kept} of {layers} layers in main memory; {slower}.",
                kept=kept,
                layers=layers,
                slower=_slower(model, found),
            ),
            {"gpu_layers": found.gpu_layers},
            found,
            model,
        )


def _slower(model: Model, start: Start) -> str:
    return read_slowly(model, start, main_memory_read(model, start))


def _candidates(
    model: Model, start: Start, corrections: Corrections | None, lighter: Model | None
) -> Iterator[_Candidate]:
    replace = dataclasses.replace
    if any(device.taken for device in start.devices):
        empty = tuple(replace(device, taken=0) for device in start.devices)
        yield (
            "free_memory",
            tr("End the other programs that hold memory there."),
            {},
            replace(start, devices=empty),
            model,
        )
    vllm = start.engine is EngineKind.VLLM
    if vllm and not start.cpu and start.gpu_memory < 0.95:
        yield (
            "gpu_memory",
            tr("Let vLLM use 95 % of the GPU."),
            {"gpu_memory": 0.95},
            replace(start, gpu_memory=0.95),
            model,
        )
    if vllm and start.kv_cache is not None:
        yield from _caches(model, start, corrections)
    if vllm and not start.cpu and start.batched_tokens > _LESS_CHUNK:
        yield (
            "batched_tokens",
            tr("Read prompts in chunks of {tokens:,} tokens.", tokens=_LESS_CHUNK),
            {"batched_tokens": _LESS_CHUNK},
            replace(start, batched_tokens=_LESS_CHUNK),
            model,
        )
    kinds = KV_TYPES[start.engine]
    current = "f16" if start.kv == "auto" and not vllm else start.kv
    for kind in kinds[kinds.index(current) + 1 :] if current in kinds else ():
        yield (
            f"kv:{kind}",
            tr("Keep the KV cache as {kind}.", kind=kind),
            {"kv": kind},
            replace(start, kv=kind, kv_v=kind),
            model,
        )
    trained = not beyond_training(model, start)
    if trained and start.streams > 1 and (streams := most(model, start, corrections)) < start.streams:
        streams = max(streams, 1)
        yield (
            "streams",
            tr("Answer {streams} at a time.", streams=streams),
            {"streams": streams},
            replace(start, streams=streams),
            model,
        )
    context = longest(model, start, corrections)
    if _SHORTEST <= context < start.context:
        yield (
            "context",
            tr("Take a context of {tokens:,} tokens.", tokens=context),
            {"context": context},
            replace(start, context=context),
            model,
        )
    if start.drafting and model.shape.mtp_layers:
        without = replace(start, drafting=False)
        yield "drafting", tr("Leave the drafting layers out."), {"speculation": False}, without, model
    if vllm and not start.cpu and not start.eager:
        yield (
            "eager",
            tr("Run without CUDA graphs; decoding gets slower."),
            {"eager": True},
            replace(start, eager=True),
            model,
        )
    four = formula_weights(model.shape, 4.5)
    if lighter is not None:
        text = tr("Take {variant}, which is smaller.", variant=lighter.name)
        yield "weights", text, {"model": lighter.name}, start, lighter
    elif four.loaded(drafting=False) < 0.8 * model.weights.loaded(drafting=False):
        text = tr("Take the model quantised to 4 bits.")
        yield "weights", text, {}, start, replace(model, weights=four)
    if not vllm and not start.cpu:
        yield from _offloads(model, start, corrections)
    if not start.cpu:
        twice = start.devices * 2
        text = tr("Use {gpus} such GPUs.", gpus=len(twice))
        yield "gpus", text, {}, replace(start, devices=twice), model
