"""The most that the hardware allows: decoding is bound by bandwidth, reading a prompt by arithmetic."""

from engine_host.fit.kv import ggml_token_bytes, state_bytes, token_bytes
from engine_host.fit.llamacpp import state_bytes as ggml_states
from engine_host.fit.shape import Layer
from engine_host.fit.start import Model, Start
from engine_host.fit.weights import weights_of
from engine_host.protocol.fit import Roofline
from engine_host.protocol.plans import EngineKind


def roofline(model: Model, start: Start, acceptance_length: float = 1.0) -> Roofline:
    """Ceilings in tokens a second at the depth `start.context`.

    Decoding: bandwidth × acceptance length ÷ (weight bytes + KV bytes of a step), where a mixture's weights
    are those of the experts that the batch chose; each drafted token reads the drafting layers too. Reading:
    operations ÷ (2 × weights that a token uses).
    """
    length = acceptance_length if start.drafting else 1.0
    gpus = max(len(start.devices), 1)
    one = step_bytes(model, start, 1)
    unknown = [device.name for device in start.devices if device.bandwidth is None]
    bandwidth = [device.bandwidth for device in start.devices if device.bandwidth is not None]
    # llama.cpp's GPUs work one after another, vLLM's side by side.
    together = gpus if start.engine is EngineKind.VLLM else 1
    speed = min(bandwidth) * together if bandwidth and not unknown else None
    flops = [device.flops for device in start.devices if device.flops is not None]
    prefill = None
    if flops and len(flops) == gpus:
        prefill = min(flops) * together / (2 * weights_of(model.shape).read)
    return Roofline(
        decode=None if speed is None else speed * length / one,
        decode_all_streams=None
        if speed is None
        else speed * length * start.streams / step_bytes(model, start, start.streams),
        prefill=prefill,
        bytes_per_step=one,
        why=f"the bandwidth of {unknown[0]} is not known" if unknown else "",
    )


def step_bytes(model: Model, start: Start, streams: int) -> int:
    """Bytes that one step of so many streams of this depth reads, over all devices together."""
    shape, weights = model.shape, model.weights
    size = weights.read(shape, streams)
    drafts = start.drafting and shape.mtp_layers > 0
    if drafts:
        size += weights.drafting * start.draft_tokens
    full, depth = shape.count(Layer.FULL) + (shape.mtp_layers if drafts else 0), start.context
    near = min(depth, shape.window or depth)
    sliding = shape.count(Layer.SLIDING) * near
    if start.engine is EngineKind.VLLM:
        # Heads that are kept several times are read several times.
        gpus = start.tensor_parallel
        kv = full * depth * token_bytes(shape.full, start.kv, gpus) * gpus
        kv += sliding * token_bytes(shape, start.kv, gpus) * gpus
        kv += shape.count(Layer.GATED_DELTA) * state_bytes(shape)
    else:
        kinds = tuple("f16" if kind == "auto" else kind for kind in (start.kv, start.kv_v))
        kv = round(full * depth * ggml_token_bytes(shape.full, *kinds))
        kv += round(sliding * ggml_token_bytes(shape, *kinds)) + ggml_states(shape, start) // start.streams
    return size + streams * kv
