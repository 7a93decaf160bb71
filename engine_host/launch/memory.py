"""The memory of a start by the one calculator (engine_host.fit), from what is known of the model."""

from collections.abc import Sequence
from dataclasses import replace

from engine_host.core.errors import HostError
from engine_host.fit.estimate import Estimate, estimate, largest_context
from engine_host.fit.parts import Basis
from engine_host.fit.report import start_on
from engine_host.fit.shapes.gguf import gguf_shape
from engine_host.fit.shapes.model import ModelShape, read_shape
from engine_host.fit.shapes.quantization import read_quantization
from engine_host.fit.shapes.tensors import WeightBytes, formula_weights
from engine_host.fit.start import USUAL_VERSION, Device, Model, Start
from engine_host.launch.resolution import Resolution
from engine_host.library.checkpoint import CONFIG, CheckpointInfo, read_json
from engine_host.library.gguf import GgufInfo
from engine_host.protocol.engine_settings.questions import question_of
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.fit import FitRequest
from engine_host.protocol.launch.plans import EngineKind, ServerChoice

# What a calculation may not know; a start is made all the same, and the engine measures.
_NOT_KNOWN = {Reason.UNSUPPORTED, Reason.KV_TYPE_UNSUPPORTED}


def main_memory(free: int, total: int) -> Device:
    """Main memory as a device: what an engine that is replaced gives back is among what is free."""
    return Device("main memory", max(total, free), max(total - free, 0))


def llamacpp_needs(
    info: GgufInfo,
    resolved: Resolution,
    devices: Sequence[Device],
    server: ServerChoice,
    streams: int | None = None,
    *,
    cpu: bool = True,
    shape: ModelShape | None = None,
) -> Estimate | None:
    """Return the memory of a start of llama.cpp by device; None for unknown metadata or an unknown KV type.

    `shape` is the model's where more is known of it than its file says.
    """
    found = _llamacpp(info, resolved, devices, server, streams, cpu=cpu, shape=shape, longest=False)
    return None if found is None else found[0]


def llamacpp_longest(
    info: GgufInfo,
    resolved: Resolution,
    devices: Sequence[Device],
    server: ServerChoice,
    *,
    cpu: bool = True,
    shape: ModelShape | None = None,
) -> int:
    """The longest context that all streams of such a start can have; 0 where none fits or it is not known."""
    found = _llamacpp(info, resolved, devices, server, None, cpu=cpu, shape=shape, longest=True)
    return 0 if found is None else found[1]


def _llamacpp(
    info: GgufInfo,
    resolved: Resolution,
    devices: Sequence[Device],
    server: ServerChoice,
    streams: int | None,
    *,
    cpu: bool,
    shape: ModelShape | None,
    longest: bool,
) -> tuple[Estimate, int] | None:
    try:
        shape = gguf_shape(info) if shape is None else replace(shape, mtp_layers=info.mtp_layers)
        weights = _whole(info.tensor_bytes or info.size)
        model = Model(info.name, "GGUF", shape, weights, info.context, pooling=info.pooling)
        request = FitRequest(server=server, **question_of(EngineKind.LLAMA_CPP, resolved.values()))
        start = start_on(request, EngineKind.LLAMA_CPP, devices, cpu=cpu, model=model)
        start = replace(start, streams=streams or start.streams)
        return estimate(model, start), largest_context(model, start) if longest else 0
    except HostError as error:
        if error.reason in _NOT_KNOWN:
            return None
        raise


def vllm_model(info: CheckpointInfo) -> Model | None:
    """The model by its numbers; None where its config is silent, or of a kind that is not known here."""
    try:
        config = read_json(info.path / CONFIG)
        shape = read_shape(config)
        weights = formula_weights(shape, None, read_quantization(config)) if info.shape else _whole(info.size)
    except HostError as error:
        if error.reason in _NOT_KNOWN:
            return None
        raise
    architecture = next(iter(info.architectures), "")
    return Model(info.path.name, info.format, shape, weights, info.context, architecture=architecture)


def vllm_start(
    resolved: Resolution, model: Model, build: str, devices: Sequence[Device], version: str | None = None
) -> Start:
    """The start that the settings resolved so far describe; `version` of vLLM, None for the usual one."""
    request = FitRequest(**question_of(EngineKind.VLLM, resolved.values()))
    start = start_on(request, EngineKind.VLLM, devices, cpu=build == "cpu", model=model)
    return replace(start, version=version or USUAL_VERSION)


def vllm_needs(model: Model, start: Start) -> Estimate | None:
    """Return the memory of a start of vLLM on each device; None when the size of its KV type is not known."""
    try:
        return estimate(model, start)
    except HostError as error:
        if error.reason in _NOT_KNOWN:
            return None
        raise


def _whole(size: int) -> WeightBytes:
    """Weights of which only the sum is of interest."""
    return WeightBytes(embedding=0, head=0, body=size, experts=0, drafting=0, vision=0, basis=Basis.FILES)
