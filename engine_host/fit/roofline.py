"""The most that the hardware allows: decoding is bound by bandwidth, reading a prompt by arithmetic."""

from engine_host.core.sizes import size_text
from engine_host.fit.kv import ggml_state_bytes, ggml_token_bytes, state_bytes, token_bytes
from engine_host.fit.offload import MAIN_MEMORY, main_memory_read
from engine_host.fit.shapes.model import RECURRENT, Layer
from engine_host.fit.shapes.weights import drafting_experts, experts_chosen, weights_of
from engine_host.fit.start import Model, Start
from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import Roofline
from engine_host.protocol.launch.plans import EngineKind

# The context of a stream that has just begun, in tokens.
SHALLOW = 256
# Of the drafts of a step, the share counted on where starts are compared: the middle, as text decides.
_TAKEN = 0.5


def roofline(model: Model, start: Start, acceptance_length: float | None = None) -> Roofline:
    """Ceilings in tokens a second, of one stream and of all streams of the start.

    Decoding: bandwidth × acceptance length ÷ (weight bytes + KV bytes of a step). `decode` and
    `decode_all_streams` are bounds: contexts that have just begun, and every draft accepted unless
    `acceptance_length` says fewer; those "at depth" have the whole of `start.context` behind them. Streams of
    a mixture choose their experts independently, the drafts of one stream alike. Reading: operations ÷
    (2 × weights that a token uses).
    """
    most = drafted(model, start) + 1
    length = min(acceptance_length or most, most)
    gpus = max(len(start.devices), 1)
    unknown = [device.name for device in start.devices if device.bandwidth is None]
    bandwidth = [device.bandwidth for device in start.devices if device.bandwidth is not None]
    # llama.cpp's GPUs work one after another, vLLM's side by side.
    together = gpus if start.engine is EngineKind.VLLM else 1
    speed = min(bandwidth) * together if bandwidth and not unknown else None
    why = tr("the memory bandwidth of {the} is not known", the=_the(unknown[0])) if unknown else ""
    if "Diffusion" in model.architecture:
        speed, why = (
            None,
            tr("it writes whole blocks of tokens, in a number of steps that depends on the text"),
        )
    if speed is not None and (slow := main_memory_read(model, start)):
        speed, why = None, read_slowly(model, start, slow)
    flops = [device.flops for device in start.devices if device.flops is not None]
    prefill = None
    if flops and len(flops) == gpus:
        prefill = min(flops) * together / (2 * weights_of(model.shape).read)

    def ceiling(streams: int, depth: int) -> float | None:
        if speed is None:
            return None
        return speed * length * streams / step_bytes(model, start, streams, depth)

    shallow = min(SHALLOW, start.context)
    return Roofline(
        decode=ceiling(1, shallow),
        decode_all_streams=ceiling(start.streams, shallow),
        decode_at_depth=ceiling(1, start.context),
        all_streams_at_depth=ceiling(start.streams, start.context),
        prefill=prefill,
        bytes_per_step=step_bytes(model, start, 1, start.context),
        streams=start.streams,
        depth=start.context,
        tokens_per_step=length,
        why=why,
    )


def read_slowly(model: Model, start: Start, slow: int) -> str:
    """Say what `slow` bytes of weights, read of main memory for each token, leave of one stream's speed."""
    bandwidth = [device.bandwidth for device in start.devices if device.bandwidth is not None]
    fast = max(step_bytes(model, start, 1, min(SHALLOW, start.context)) - slow, 0)
    took = slow / MAIN_MEMORY + (fast / min(bandwidth) if bandwidth else 0)
    return tr(
        "{slow} are read of main memory for each token: at 50 GB/s at most {limit:,.0f} tok/s",
        slow=size_text(slow),
        limit=1 / took,
    )


def drafted(model: Model, start: Start) -> int:
    """Tokens that a step drafts: none where nothing drafts."""
    return start.draft_tokens if start.drafting and (model.shape.mtp_layers or model.drafter) else 0


def expected(ceiling: float, drafts: int) -> float:
    """The ceiling of a step of which a usual share of the drafts is taken; it compares starts."""
    return ceiling * (1 + _TAKEN * drafts) / (1 + drafts)


def step_bytes(model: Model, start: Start, streams: int, depth: int | None = None) -> int:
    """Bytes that one step of so many streams reads, over all devices together.

    `depth` is the context of each, in tokens; without one, that of the start. What another model reads that
    drafts is not known and left out.
    """
    shape, weights = model.shape, model.weights
    depth = start.context if depth is None else depth
    size = weights.read(shape, streams)
    drafts = start.drafting and shape.mtp_layers > 0
    if drafts:
        unread = drafting_experts(shape) * (1 - experts_chosen(shape, streams))
        layers = weights.drafting - weights.drafting_tables
        size += round(layers * (1 - unread) * start.draft_tokens)
        size += _head_of_a_draft(model, start) * start.draft_tokens
    full = shape.count(Layer.FULL) + (shape.mtp_layers if drafts else 0)
    near = min(depth, shape.window or depth)
    sliding = (shape.count(Layer.SLIDING) + shape.count(Layer.CHUNKED)) * near
    if start.engine is EngineKind.VLLM:
        # Heads that are kept several times are read several times.
        gpus = start.tensor_parallel
        kv = full * depth * token_bytes(shape.full, start.kv, gpus) * gpus
        kv += sliding * token_bytes(shape, start.kv, gpus) * gpus
        kv += sum(map(shape.count, RECURRENT)) * state_bytes(shape)
    else:
        kinds = tuple("f16" if kind == "auto" else kind for kind in (start.kv, start.kv_v))
        kv = round(full * depth * ggml_token_bytes(shape.full, *kinds))
        kv += round(sliding * ggml_token_bytes(shape, *kinds)) + ggml_state_bytes(shape)
    return size + streams * kv


def _head_of_a_draft(model: Model, start: Start) -> int:
    """Bytes of the output matrix that one draft reads: one as large as the model's, or the copy in 8 bits."""
    own = model.weights.head or model.weights.embedding
    copied = start.engine is EngineKind.VLLM and start.eight_bit_head
    return min(own, model.shape.vocabulary * model.shape.hidden) if copied else own


def _the(device: str) -> str:
    """A device in a sentence: `the processor`, and a GPU by its own name."""
    return f"the {device}" if device == "processor" else device
