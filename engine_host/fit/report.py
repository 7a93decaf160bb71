"""The whole answer about one start: devices, bounds, KV types, curve, grid, changes, advice, ceilings."""

import dataclasses
from collections.abc import Sequence

from engine_host.core.sizes import size_text
from engine_host.engines.llamacpp.command import pooling_of, processor_batch
from engine_host.fit import vllm
from engine_host.fit.advisor import AdviceInput, advice, stretched
from engine_host.fit.changes import KV_TYPES, changes, shorter, ways_out
from engine_host.fit.estimate import (
    LONGEST,
    Blocker,
    Corrections,
    Estimate,
    beyond_training,
    blocker,
    estimate,
    holds,
    largest_context,
    most_streams,
)
from engine_host.fit.hardware import counted
from engine_host.fit.kv import TURBOQUANT, ggml_token_bytes, token_bytes
from engine_host.fit.parts import Part
from engine_host.fit.pool import BOUNDARY
from engine_host.fit.reserve import reserve_words
from engine_host.fit.roofline import roofline
from engine_host.fit.shapes.model import Layer, ModelShape
from engine_host.fit.start import Device, Model, Start
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import (
    Change,
    Correction,
    CurvePoint,
    DeviceFit,
    FitPart,
    FitReport,
    FitRequest,
    GridCell,
    KvChoice,
    PartSource,
    Verdict,
)
from engine_host.protocol.launch.plans import EngineKind

_USUAL_CONTEXT = 8192
# A start can be given no more (protocol.plans.Overrides).
MOST_STREAMS = 256
_GRID_STREAMS = (1, 2, 4, 8, 16, 32)
_CURVE = 24


def start_of(request: FitRequest, model: Model, devices: Sequence[Device], *, cpu: bool) -> Start:
    """The start that a request means; with no context given a usual one."""
    engine = request.engine
    if engine is EngineKind.AUTO:
        engine = EngineKind.LLAMA_CPP if model.format == "GGUF" else EngineKind.VLLM
    count = 1 if cpu else request.tensor_parallel or _sharing(model.shape, len(devices), engine)
    chosen = sorted(devices, key=lambda device: -device.free)[:count]
    lacking = count - len(chosen) if chosen else 0
    chosen += chosen[:1] * lacking
    start = start_on(request, engine, chosen, cpu=cpu, model=model)
    return dataclasses.replace(start, lacking=lacking)


def start_on(
    request: FitRequest, engine: EngineKind, devices: Sequence[Device], *, cpu: bool, model: Model
) -> Start:
    """The same on exactly these devices; with no context given a usual one."""
    kind = request.kv or ("auto" if engine is EngineKind.VLLM else "f16")
    requested = request.kv_cache_gib if engine is EngineKind.VLLM else None
    kv_cache = None if requested is None else vllm.requested_cache(requested, cpu=cpu)
    arguments = request.extra_arguments
    return Start(
        engine=engine,
        devices=tuple(devices),
        cpu=cpu,
        context=request.context or min(model.context or _USUAL_CONTEXT, _USUAL_CONTEXT),
        streams=request.streams,
        kv=kind,
        kv_v=request.kv_v or kind,
        gpu_memory=request.gpu_memory,
        kv_cache=kv_cache,
        batched_tokens=request.batched_tokens or _usual_batch(request, engine, cpu=cpu),
        drafting=request.speculation,
        draft_tokens=request.draft_tokens,
        prefix_caching=request.prefix_caching,
        eager=request.eager,
        embeddings=request.embeddings or (engine is EngineKind.VLLM and vllm.pools(model, arguments)),
        pooling=pooling_of(arguments) or model.pooling,
        hybrid_manager=vllm.hybrid_manager(arguments),
        spared_layers=request.spared_layers,
        eight_bit_head=_eight_bit_head(request, engine, devices),
        grouped_attention=_grouped_attention(request, engine, devices),
        server=request.server,
        gpu_layers=request.gpu_layers,
        cpu_experts=request.cpu_experts or 0,
        flash_attention=request.flash_attention != "off",
    )


def _usual_batch(request: FitRequest, engine: EngineKind, *, cpu: bool) -> int:
    """Return the tokens of a step where the question does not say: as a plan sets them."""
    if engine is EngineKind.LLAMA_CPP and cpu and not request.speculation:
        return processor_batch(request.streams)
    return 2048


def _eight_bit_head(request: FitRequest, engine: EngineKind, devices: Sequence[Device]) -> bool:
    if "eight_bit_head" in request.model_fields_set:
        return request.eight_bit_head
    # As the patch draft-head-8-bit is by default (its default_sm).
    hopper = bool(devices) and all((device.sm or "").startswith("9.") for device in devices)
    return engine is EngineKind.VLLM and request.speculation and hopper


def _grouped_attention(request: FitRequest, engine: EngineKind, devices: Sequence[Device]) -> bool:
    if "grouped_attention" in request.model_fields_set:
        return request.grouped_attention
    # As the patch turboquant-grouped-attention is by default.
    old = any((device.sm or "").startswith(("5.", "6.", "7.")) for device in devices)
    return engine is EngineKind.VLLM and not old


def report(
    request: FitRequest,
    model: Model,
    start: Start,
    corrections: Sequence[Correction] = (),
    lighter: Sequence[Model] = (),
) -> FitReport:
    """Everything that is asked. Raises HostError(kv_type_unsupported) for a KV type of unknown size.

    `lighter` are the same model with smaller weights, as ways out where it does not fit.
    """
    factors = {one.part: one.factor for one in corrections}
    if (stopped := blocker(model, start)) is not None:
        return _cannot(model, start, stopped, ways_out(model, start, stopped, lighter, factors))
    found = estimate(model, start, factors)
    named = request.hardware is not None or request.gpus is not None
    facts = AdviceInput(model, start, found, request.min_p, request.speculation, named=named)
    pool = vllm.pool(model, start) if start.engine is EngineKind.VLLM else None
    longest = largest_context(model, start, factors)
    verdict, why, reason = found.verdict, found.why, None
    if beyond_training(model, start):
        # llama.cpp starts, and no stream gets what was asked for.
        verdict, reason = Verdict.CANNOT_RUN, Reason.CONTEXT_TOO_LONG
        why = tr(
            "The model was trained for {context:,} tokens, and llama.cpp gives a stream no more.",
            context=model.context,
        )
    runs = verdict in {Verdict.FITS, Verdict.TIGHT}
    return FitReport(
        model=model.name,
        engine=start.engine,
        kv=start.kv,
        context=start.context,
        streams=start.streams,
        tensor_parallel=start.tensor_parallel,
        verdict=verdict,
        reason=reason,
        why=why,
        devices=tuple(_device(device, found) for device in start.devices),
        reserve=reserve_words(start, found, named=named),
        kv_bytes_per_token=kv_token_bytes(model.shape, start),
        kv_blocks=pool.blocks(found.kv_budget) if pool else None,
        kv_pool_tokens=pool.tokens(found.kv_budget, start.context) if pool else None,
        block_tokens=pool.block_tokens if pool else None,
        largest_context=longest,
        most_streams=min(most_streams(model, start, factors), MOST_STREAMS),
        kv_choices=_kv_choices(model, start, factors),
        curve=_curve(model, start, factors),
        grid=_grid(model, start, factors) if request.grid else (),
        changes=(shorter(model, start, factors),)
        if verdict is Verdict.CANNOT_RUN
        else changes(model, found, factors, _more(request, found), lighter),
        advice=advice(facts),
        roofline=roofline(model, start, request.acceptance_length) if runs and not start.embeddings else None,
        corrections=tuple(corrections),
        unknown=model.unknown,
    )


def kv_token_bytes(shape: ModelShape, start: Start) -> float:
    """Bytes that one more token of a long stream takes over all layers, on one device."""
    full = shape.cached(Layer.FULL)
    if start.engine is EngineKind.VLLM:
        # vLLM keeps every token of layers with local chunks (vllm_pool).
        full += shape.cached(Layer.CHUNKED)
        spared = start.spared_layers and start.kv in TURBOQUANT and full == len(shape.layers)
        native = min(2 * BOUNDARY, full) if spared else 0
        kept = token_bytes(shape.full, "auto", start.tensor_parallel)
        return native * kept + (full - native) * token_bytes(shape.full, start.kv, start.tensor_parallel)
    kinds = ("f16" if kind == "auto" else kind for kind in (start.kv, start.kv_v))
    return full * ggml_token_bytes(shape.full, *kinds) / start.tensor_parallel


def _more(request: FitRequest, found: Estimate) -> str:
    """The options that ask for twice as many GPUs; none for described ones and this machine."""
    if request.hardware is None:
        return ""
    number, name = 2 * len(found.start.devices), counted(request.hardware)[1]
    return f'--hardware "{number}x {name}"' + (f" --tp {number}" if request.tensor_parallel else "")


def _sharing(shape: ModelShape, devices: int, engine: EngineKind) -> int:
    """Return the default number of GPUs: all, or the most that divide the model's heads evenly."""
    if engine is EngineKind.LLAMA_CPP:
        return max(devices, 1)
    return max((count for count in range(1, devices + 1) if shape.heads % count == 0), default=1)


def _cannot(model: Model, start: Start, stopped: Blocker, changed: Sequence[Change]) -> FitReport:
    too_long = stopped.reason is Reason.CONTEXT_TOO_LONG
    return FitReport(
        changes=tuple(changed),
        advice=(stretched(start),) if too_long else (),
        model=model.name,
        engine=start.engine,
        kv=start.kv,
        context=start.context,
        streams=start.streams,
        tensor_parallel=start.tensor_parallel,
        verdict=Verdict.CANNOT_RUN,
        reason=stopped.reason,
        why=stopped.why,
        unknown=model.unknown,
    )


def _device(device: Device, found: Estimate) -> DeviceFit:
    kv = found.cache
    parts = [_part(part) for part in found.parts]
    parts.append(
        FitPart(
            name="KV cache and states" if found.start.engine is EngineKind.VLLM else "KV cache",
            size=kv,
            low=kv,
            high=kv,
            source=PartSource.FORMULA,
            note=_kv_note(found),
        )
    )
    return DeviceFit(
        name=device.name,
        total=device.total,
        taken=device.taken,
        room=found.budget,
        parts=tuple(parts),
        needed=found.needed,
        free_after=found.budget - found.needed,
    )


def _kv_note(found: Estimate) -> str:
    tokens = tr("{streams} × {context:,} tokens", streams=found.start.streams, context=found.start.context)
    if found.reserved is None:
        return tokens
    return tr("reserved at the start; {tokens} need {kv}", tokens=tokens, kv=size_text(found.kv))


def _part(part: Part) -> FitPart:
    return FitPart(
        name=part.name,
        size=part.bytes,
        low=part.low,
        high=part.high,
        source=PartSource(part.basis.value),
        note=part.about,
    )


def _kv_choices(model: Model, start: Start, factors: Corrections) -> tuple[KvChoice, ...]:
    found = []
    too_long = beyond_training(model, start)
    for kind in KV_TYPES[start.engine]:
        other = dataclasses.replace(start, kv=kind, kv_v=kind)
        stopped = blocker(model, other)
        if stopped is not None:
            found.append(
                KvChoice(
                    kv=kind,
                    bytes_per_token=kv_token_bytes(model.shape, other),
                    verdict=Verdict.CANNOT_RUN,
                    largest_context=0,
                    note=stopped.why,
                )
            )
            continue
        found.append(
            KvChoice(
                kv=kind,
                bytes_per_token=kv_token_bytes(model.shape, other),
                verdict=Verdict.CANNOT_RUN if too_long else estimate(model, other, factors).verdict,
                largest_context=largest_context(model, other, factors),
            )
        )
    return tuple(found)


def _curve(model: Model, start: Start, factors: Corrections) -> tuple[CurvePoint, ...]:
    longest = model.context or max(start.context * 2, 32_768)
    points = []
    for number in range(1, _CURVE + 1):
        context = max(longest * number // _CURVE, 1)
        found = estimate(model, dataclasses.replace(start, context=context), factors)
        points.append(
            CurvePoint(context=context, needed=found.needed, room=found.budget, verdict=_cache_verdict(found))
        )
    return tuple(points)


def _grid(model: Model, start: Start, factors: Corrections) -> tuple[GridCell, ...]:
    contexts, context = [], 4096
    while context < min(model.context or 262_144, LONGEST):
        contexts.append(context)
        context *= 2
    contexts.append(min(model.context or 262_144, LONGEST))
    return tuple(
        GridCell(
            context=context,
            streams=streams,
            verdict=_cache_verdict(
                estimate(model, dataclasses.replace(start, context=context, streams=streams), factors)
            ),
        )
        for context in contexts
        for streams in _GRID_STREAMS
    )


def _cache_verdict(found: Estimate) -> Verdict:
    """Return the verdict for a chart, where only starts count that hold all streams."""
    return found.verdict if holds(found) else Verdict.DOES_NOT_FIT
