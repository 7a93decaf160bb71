"""Estimate llama.cpp's memory on each device: weights, KV cells, states, compute and output buffers."""

from engine_host.core.sizes import size_text
from engine_host.engines.llamacpp.command import UBATCH, embedding_batch
from engine_host.fit.kv import ggml_cells, ggml_state_bytes, ggml_token_bytes, ggml_window_cells
from engine_host.fit.offload import offload, weights_held
from engine_host.fit.parts import MIB, WEIGHTS_FROM, Basis, Part, tensors_at_least
from engine_host.fit.shapes.model import GatedDelta, Layer, ModelShape
from engine_host.fit.start import Model, Start
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import ServerChoice

_FLOAT = 4
# The mask of attention, one row for each token of a batch: f16 for flash attention, else f32.
_MASK = {True: 2, False: 4}
_HALF = 2
# Measured on this project's machines, server without weights and buffers.
_PROCESS = 90 * MIB
# CUDA's context, its libraries and the pool for its matrix products.
_CUDA_CONTEXT = 420 * MIB


def parts(model: Model, start: Start) -> tuple[Part, ...]:
    """Everything but the KV cache, on the fullest device."""
    shape, gpus = model.shape, len(start.devices)
    found = [_weights(model, start)]
    if states := state_bytes(shape, start):
        found.append(_exact("states", _share(states, gpus), Basis.FORMULA, tr("one for each stream")))
    found.append(_compute(shape, start))
    found += _copies(shape, start)
    output = shape.vocabulary * _FLOAT * start.streams * (2 if _drafts(shape, start) else 1)
    if start.cpu:
        found.append(_exact("output", output, Basis.FORMULA, tr("logits of one token for each stream")))
        found.append(_banded("server", _PROCESS, 0.6, 1.6, tr("the process itself")))
    else:
        found.append(_banded("CUDA context", _CUDA_CONTEXT, 0.6, 1.5, tr("driver, kernels, libraries")))
    return tuple(found)


def kv_bytes(model: Model, start: Start) -> int:
    """Bytes of the KV cache on the fullest device: cells of every stream are allocated at the start."""
    shape = model.shape
    kinds = tuple("f16" if kind == "auto" else kind for kind in (start.kv, start.kv_v))
    cells = ggml_cells(start.context) * start.streams
    held = offload(shape, start)
    size = held.count(Layer.FULL) * cells * ggml_token_bytes(shape.full, *kinds)
    if near := held.count(Layer.SLIDING):
        window = ggml_window_cells(start.context, shape.window or start.context, _batch(start))
        size += near * window * start.streams * ggml_token_bytes(shape, *kinds)
    if _drafts(shape, start):
        size += shape.mtp_layers * cells * ggml_token_bytes(shape, "f16", "f16")
    return _share(round(size), len(start.devices))


def state_bytes(shape: ModelShape, start: Start) -> int:
    """Bytes of all streams' states; with drafting one more for every token that may be taken back."""
    kept = 1 + (start.draft_tokens if _drafts(shape, start) else 0)
    layers = shape.count(Layer.GATED_DELTA)
    held = offload(shape, start).count(Layer.GATED_DELTA)
    return ggml_state_bytes(shape) * start.streams * kept * held // max(layers, 1)


def compute_bytes(
    shape: ModelShape, tokens: int, cells: int, streams: int, *, residual: bool = True, flash: bool = True
) -> int:
    """Bytes of the graph's intermediate values for a batch of so many tokens.

    The largest set of values that live at one time: of a feed-forward part its three products, of attention
    queries, keys and values with their rotated copies and what comes of them; of a mixture the products of
    the experts used; of a gated-delta layer what `_delta_bytes` says. Beside them lie the attention mask,
    and the layer's own input and output; which of these are kept differs from build to build. Agrees with
    what llama.cpp 0c1e570 (with the residual) and 11549 (without) print for the demo model, 1 to 128
    streams, and for seven dense shapes. Without flash attention the scores of each head lie there too, for
    every token and cell; agrees with 11549 for the demo model and five dense shapes.
    """
    # A batch is split evenly among its streams, so it is rounded up to a multiple of them.
    tokens = -(-tokens // streams) * streams
    kept = shape.hidden if residual else 0
    wide = [_attention_width(shape, residual=residual)]
    if (experts := shape.experts) is not None:
        products = experts.used * (2 * experts.width)
        wide.append(kept + shape.hidden + max(products, experts.used * (experts.width + shape.hidden)))
    elif shape.feed_forward:
        wide.append(3 * shape.feed_forward + (4 if residual else 5) * shape.hidden)
    live = max(wide) * tokens * _FLOAT
    if shape.gated_delta is not None:
        live = max(live, _delta_bytes(shape, shape.gated_delta, tokens, streams, residual=residual))
    if not flash:
        live = max(live, tokens * (cells * shape.full.heads + _plain_width(shape)) * _FLOAT)
    return live + tokens * cells * _MASK[flash]


def _plain_width(shape: ModelShape) -> int:
    """Values that an attention layer keeps alive for a token beside its scores."""
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    return 3 * shape.hidden + (4 if shape.output_gate else 3) * queries + 2 * keys


def _attention_width(shape: ModelShape, *, residual: bool) -> int:
    """Values that an attention layer keeps alive for a token."""
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    if shape.output_gate:
        return (shape.hidden if residual else 0) + 3 * queries + 2 * keys
    return 3 * queries + 3 * keys + (0 if residual else shape.hidden)


def embedding_bytes(
    shape: ModelShape,
    tokens: int,
    cells: int,
    streams: int,
    *,
    residual: bool = True,
    flash: bool = True,
    held: int = 1,
) -> int:
    """Bytes of the same for a start that answers with vectors.

    Its graph ends in scores of every word for each token of a batch, which nobody reads; with a large
    vocabulary they are wider than any layer. `held` values as wide as the model lie before them: one at
    least, and five at most, by where ggml's allocator finds a free block. In builds without the residual they
    may lie where the mask was. Agrees with what 0c1e570 and 11549 print for seven shapes.
    """
    live = compute_bytes(shape, tokens, cells, streams, residual=residual, flash=flash)
    tokens = -(-tokens // streams) * streams
    mask, scores = tokens * cells * _MASK[flash], tokens * shape.vocabulary * _FLOAT
    if not residual and scores <= mask:
        return live
    return max(live, mask + scores + held * tokens * shape.hidden * _FLOAT)


def _delta_bytes(shape: ModelShape, delta: GatedDelta, tokens: int, streams: int, *, residual: bool) -> int:
    """Bytes that a gated-delta layer keeps alive for a batch.

    Three copies of what goes through the convolution and the gate z. States of few streams lie where
    something else was; of more they do not fit there (ggml's allocator puts a tensor into one free block),
    and what comes of them (`values`), their copies and the convolution's inputs add to the top.
    """
    row = tokens * _FLOAT
    values, hidden = delta.value_heads * delta.value_dim * row, shape.hidden * row
    wide = (3 * delta.conv_width + delta.value_heads) * row + values
    states = streams * delta.value_heads * delta.value_dim * delta.key_dim * _FLOAT
    taps = streams * (delta.conv_kernel - 1) * delta.conv_width * _FLOAT
    if residual:
        wide += hidden
        if states <= values:
            return wide + 2 * taps
        return max(wide + values + states, wide - values + 2 * states) + 2 * taps
    if states <= hidden:
        return wide + 2 * taps
    wide += hidden
    if states + 2 * taps <= hidden + values:
        return wide + values + taps
    if states <= delta.conv_width * row:
        return wide + 2 * values + states + taps
    return wide + 2 * states + (taps if taps <= hidden else 2 * taps)


def _batch(start: Start) -> int:
    """Tokens that are computed at once; a batch is never longer than all contexts together."""
    most = ggml_cells(start.context) * start.streams
    if start.embeddings:
        return min(embedding_batch(start.context, start.pooling), most)
    return min(UBATCH, start.batched_tokens, most)


def _embedding(shape: ModelShape, start: Start) -> Part:
    cells = ggml_cells(start.context)
    tokens = _batch(start)

    def size(held: int, *, residual: bool) -> int:
        return embedding_bytes(
            shape, tokens, cells, start.streams, residual=residual, flash=start.flash_attention, held=held
        )

    # One value is held in a build with the residual, or more in small batches, and five in one without.
    sizes = {
        ServerChoice.BUILT: (size(1, residual=True), size(5, residual=True)),
        ServerChoice.PREBUILT: (size(5, residual=False), size(5, residual=False)),
    }
    chosen = [sizes[start.server]] if start.server in sizes else [*sizes.values()]
    low, high = _band(shape, start)
    likely, least, most = chosen[0][0], min(one for one, _ in chosen), max(two for _, two in chosen)
    about = tr("for batches of {tokens:,} tokens, with the logits of each", tokens=tokens)
    return Part("compute", likely, round(least * low), round(most * high), Basis.ESTIMATE, about)


def _band(shape: ModelShape, start: Start) -> tuple[float, float]:
    """Return the factors between which a compute buffer lies; graphs that nobody measured have wide ones."""
    if not start.cpu or shape.experts is not None or _drafts(shape, start):
        return 0.7, 1.6
    if not start.flash_attention and start.server is not ServerChoice.PREBUILT:
        return 0.9, 1.1
    # Of dense shapes two in seven had 3 and 9 % less in a build with the residual.
    dense = shape.gated_delta is None and start.server is not ServerChoice.PREBUILT
    return (0.9 if dense else 0.97), 1.03


def _compute(shape: ModelShape, start: Start) -> Part:
    if start.embeddings:
        return _embedding(shape, start)
    cells = ggml_cells(start.context)
    tokens = _batch(start)
    flash = start.flash_attention
    built = prebuilt = compute_bytes(shape, tokens, cells, start.streams, flash=flash)
    if _drafts(shape, start):
        built += tokens * ((2 * shape.feed_forward + shape.hidden) * _FLOAT + cells * _MASK[flash])
        # Build 11549 sets the drafting context aside as large as the model's own.
        prebuilt *= 2
    else:
        prebuilt = compute_bytes(shape, tokens, cells, start.streams, residual=False, flash=flash)
    about = tr("for batches of {tokens:,} tokens", tokens=tokens)
    low, high = _band(shape, start)
    if start.server is ServerChoice.PREBUILT:
        return _banded("compute", prebuilt, low, high, about)
    if start.server is ServerChoice.BUILT:
        return _banded("compute", built, low, high, about)
    least, most = min(built, prebuilt), max(built, prebuilt)
    return Part("compute", built, round(least * low), round(most * high), Basis.ESTIMATE, about)


def _copies(shape: ModelShape, start: Start) -> tuple[Part, ...]:
    """Estimate what flash attention on a GPU keeps of a quantised cache in f16: one layer's keys and values.

    Its kernels for prompts read f16 alone. 0c1e570 sets it aside at the start with the compute buffer
    (ggml_cuda_flash_attn_ext_get_alloc_size), older builds as the context fills, up to twice as much:
    7.9 MB for each 1,000 tokens of the 27B were reported.
    """
    full = shape.full
    sizes = ((start.kv, full.head_dim), (start.kv_v, full.value_dim or full.head_dim))
    copied = sum(size for kind, size in sizes if kind not in {"auto", "f16"})
    if start.cpu or not start.flash_attention or not copied or not offload(shape, start).count(Layer.FULL):
        return ()
    cells, tokens = ggml_cells(start.context), _batch(start)
    size = cells * start.streams * full.kv_heads * copied * _HALF
    # They lie where other layers have their values, as far as those are wider than attention's.
    live = compute_bytes(shape, tokens, cells, start.streams) - tokens * cells * _MASK[True]
    size = max(size - max(live - _attention_width(shape, residual=True) * tokens * _FLOAT, 0), 0)
    return (_banded("attention's copies", size, 0, 2, tr("one layer's keys and values in f16")),)


def _weights(model: Model, start: Start) -> Part:
    weights = model.weights
    size = weights.loaded(drafting=_drafts(model.shape, start))
    basis, read = weights.basis, WEIGHTS_FROM[weights.basis]
    if start.cpu:
        return Part("weights", size, tensors_at_least(size, basis), size, basis, read)
    whole, size = size, weights_held(model, start, drafting=_drafts(model.shape, start))
    each = _share(size, len(start.devices))
    from_files = "" if basis is Basis.FILES else f"; {read}"
    layers, held = len(model.shape.layers), len(offload(model.shape, start).layers)
    if held < layers or start.cpu_experts:
        kept = size_text(whole - size)
        where = tr(
            "{held} of {layers} layers on the GPU, {kept} in main memory", held=held, layers=layers, kept=kept
        )
        about = f"{where}{from_files}"
    else:
        kept = size_text(whole - size)
        embedding = "" if whole == size else tr("; the embedding, {kept}, stays in main memory", kept=kept)
        about = tr("all layers on the GPU{from_files}", from_files=f"{embedding}{from_files}")
    low = tensors_at_least(each, basis)
    if len(start.devices) == 1:
        return Part("weights", each, low, each, basis, about)
    # Whole layers go to a GPU, so the shares differ by up to one layer, and the last one has the head.
    layer = size // max(len(model.shape.layers), 1)
    high = each + layer + weights.head
    return Part(
        "weights", each, low - layer, high, basis, tr("whole layers each{from_files}", from_files=from_files)
    )


def _drafts(shape: ModelShape, start: Start) -> bool:
    return start.drafting and shape.mtp_layers > 0


def _share(size: int, devices: int) -> int:
    return -(-size // devices)


def _exact(name: str, size: int, basis: Basis, about: str) -> Part:
    return Part(name, size, size, size, basis, about)


def _banded(name: str, size: float, low: float, high: float, about: str) -> Part:
    return Part(name, round(size), round(size * low), round(size * high), Basis.ESTIMATE, about)
