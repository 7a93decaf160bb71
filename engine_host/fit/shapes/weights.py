"""Count the weights of a shape, part by part; for a model without files, or to split one over GPUs."""

from collections.abc import Iterator
from dataclasses import dataclass

from engine_host.fit.shapes.model import RECURRENT, Latent, Layer, ModelShape


@dataclass(frozen=True, slots=True)
class Weights:
    """Numbers of weights; `read` of them are read for one token of one stream."""

    embedding: int
    attention: int
    gated_delta: int
    feed_forward: int
    drafting: int
    total: int
    read: int


def weights_of(shape: ModelShape) -> Weights:
    """The weights of a Llama-like decoder with its mixtures, gated-delta layers and drafting layers.

    The formulas are those of the layers in Transformers (Qwen3-Next, Llama, Mixtral); biases, which few
    models have, are left out.
    """
    full, used = _feed_forward(shape)
    mixtures = shape.experts.layers if shape.experts else len(shape.layers)
    dense = (len(shape.layers) - mixtures) * _matrices(shape) * shape.hidden * shape.feed_forward
    near_layers = shape.count(Layer.SLIDING) + shape.count(Layer.CHUNKED)
    norms = 2 * shape.hidden
    attention = shape.count(Layer.FULL) * (_attention(shape.full) + norms)
    attention += near_layers * (_attention(shape) + norms)
    delta = shape.count(Layer.GATED_DELTA) * (_gated_delta(shape) + norms)
    delta += shape.count(Layer.MAMBA) * (_mamba(shape) + norms)
    feed_forward = mixtures * full + dense
    table = shape.vocabulary * shape.hidden
    embedding = table * (1 if shape.tied else 2) + shape.hidden + shape.layer_tables
    # A drafting layer: two norms at its entry, both projected to one width, a whole layer, a norm at its end.
    drafting = shape.mtp_layers * (
        3 * shape.hidden + 2 * shape.hidden * shape.hidden + _attention(shape) + norms + full
    )
    total = embedding + attention + delta + feed_forward + drafting
    # One row of the embedding's table is read, and the whole of the head's.
    read = table + attention + delta + mixtures * used + dense
    return Weights(embedding, attention, delta, feed_forward, drafting, total, read)


@dataclass(frozen=True, slots=True)
class Matrix:
    """A linear layer by its module's name, and how many weights it has; `part` is of the model's bytes."""

    name: str
    weights: int
    part: str = "body"


def matrices(shape: ModelShape) -> Iterator[Matrix]:
    """Every linear layer that a quantisation may name; norms, convolutions and routers are not among them."""
    first_mixture = len(shape.layers) - (shape.experts.layers if shape.experts else 0)
    interval = len(shape.layers) // shape.experts.layers if shape.experts and shape.experts.layers else 0
    for place, kind in enumerate(shape.layers):
        name = f"layers.{place}"
        if kind in RECURRENT:
            yield from _mixer(shape, name, kind)
        else:
            yield from _projections(shape.full if kind is Layer.FULL else shape, name, "body")
        mixture = (place + 1) % interval == 0 if interval > 1 else place >= first_mixture
        yield from _fed_forward(shape, name, "body", mixture=mixture and shape.experts is not None)
    for place in range(shape.mtp_layers):
        name = f"mtp.layers.{place}"
        yield from _projections(shape, name, "drafting")
        yield from _fed_forward(shape, name, "drafting", mixture=shape.experts is not None)


def _projections(shape: ModelShape, layer: str, part: str) -> Iterator[Matrix]:
    name = f"{layer}.self_attn"
    if shape.latent is not None and shape.latent.nope_dim:
        # Its projections are quantised together or not at all.
        yield Matrix(f"{name}.o_proj", _attention(shape), part)
        return
    queries = shape.heads * shape.head_dim
    keys = shape.kv_heads * shape.head_dim
    yield Matrix(f"{name}.q_proj", shape.hidden * queries * (2 if shape.output_gate else 1), part)
    yield Matrix(f"{name}.k_proj", shape.hidden * keys, part)
    yield Matrix(f"{name}.v_proj", shape.hidden * keys, part)
    yield Matrix(f"{name}.o_proj", shape.hidden * queries, part)


def _mixer(shape: ModelShape, layer: str, kind: Layer) -> Iterator[Matrix]:
    if kind is Layer.MAMBA and (mamba := shape.mamba) is not None:
        inner = mamba.heads * mamba.head_dim
        entry = 2 * inner + 2 * mamba.groups * mamba.state + mamba.heads
        yield Matrix(f"{layer}.mamba.in_proj", shape.hidden * entry)
        yield Matrix(f"{layer}.mamba.out_proj", shape.hidden * inner)
    if kind is Layer.GATED_DELTA and (delta := shape.gated_delta) is not None:
        values = delta.value_heads * delta.value_dim
        yield Matrix(f"{layer}.linear_attn.in_proj_qkv", shape.hidden * delta.conv_width)
        yield Matrix(f"{layer}.linear_attn.in_proj_z", shape.hidden * values)
        yield Matrix(f"{layer}.linear_attn.out_proj", shape.hidden * values)


def _fed_forward(shape: ModelShape, layer: str, part: str, *, mixture: bool) -> Iterator[Matrix]:
    experts = shape.experts
    names = ("gate_proj", "up_proj", "down_proj")[3 - _matrices(shape) :]
    if experts is None or not mixture:
        yield from (Matrix(f"{layer}.mlp.{name}", shape.hidden * shape.feed_forward, part) for name in names)
        return
    # One expert stands for all: a list that leaves some alone leaves all.
    number = experts.count * shape.hidden * experts.width
    place = "experts" if part == "body" else part
    yield from (Matrix(f"{layer}.mlp.experts.0.{name}", number, place) for name in names)
    if experts.shared_width:
        shared = shape.hidden * experts.shared_width
        yield from (Matrix(f"{layer}.mlp.shared_experts.{name}", shared, part) for name in names)


def experts_chosen(shape: ModelShape, streams: int) -> float:
    """The share of a mixture's experts that tokens of so many streams choose independently; 1 without one."""
    if shape.experts is None:
        return 1.0
    return 1 - (1 - shape.experts.used / shape.experts.count) ** streams


def drafting_experts(shape: ModelShape) -> float:
    """The share of the drafting layers' weights that are experts."""
    drafting = weights_of(shape).drafting
    if shape.experts is None or not drafting:
        return 0.0
    return shape.mtp_layers * shape.experts.count * 3 * shape.hidden * shape.experts.width / drafting


def _attention(shape: ModelShape) -> int:
    if (latent := shape.latent) is not None and latent.nope_dim:
        return _latent_attention(shape, latent)
    queries = shape.heads * shape.head_dim
    keys = shape.kv_heads * shape.head_dim
    gated = queries if shape.output_gate else 0
    # Queries and keys are normed by head where the queries are gated, as in Qwen3.5.
    norms = 2 * shape.head_dim if shape.output_gate else 0
    return shape.hidden * (queries + gated + 2 * keys) + queries * shape.hidden + norms


def _latent_attention(shape: ModelShape, latent: Latent) -> int:
    """DeepSeek's projections: queries through a small vector of their own where they have one."""
    query = latent.nope_dim + latent.rope_dim
    queries = shape.heads * query
    entry = shape.hidden * queries
    if latent.query_rank:
        entry = latent.query_rank * (shape.hidden + queries + 1)
    compressed = shape.hidden * (latent.rank + latent.rope_dim) + latent.rank
    expanded = latent.rank * shape.heads * (latent.nope_dim + latent.value_dim)
    return entry + compressed + expanded + shape.heads * latent.value_dim * shape.hidden


def _mamba(shape: ModelShape) -> int:
    mamba = shape.mamba
    if mamba is None:
        return 0
    inner = mamba.heads * mamba.head_dim
    channels = inner + 2 * mamba.groups * mamba.state
    entry = shape.hidden * (inner + channels + mamba.heads)
    return entry + channels * (mamba.conv_kernel + 1) + inner * shape.hidden + inner + 3 * mamba.heads


def _gated_delta(shape: ModelShape) -> int:
    delta = shape.gated_delta
    if delta is None:
        return 0
    values = delta.value_heads * delta.value_dim
    entry = shape.hidden * (delta.conv_width + values + 2 * delta.value_heads)
    convolution = delta.conv_width * delta.conv_kernel
    return entry + convolution + values * shape.hidden + 2 * delta.value_heads + delta.value_dim


def _matrices(shape: ModelShape) -> int:
    """The number of matrices of a feed-forward part."""
    return 3 if shape.gated else 2


def _feed_forward(shape: ModelShape) -> tuple[int, int]:
    """Weights of one layer's feed-forward part, and those of them that one token uses."""
    if shape.experts is None:
        whole = _matrices(shape) * shape.hidden * shape.feed_forward
        return whole, whole
    experts = shape.experts
    one = 3 * shape.hidden * experts.width
    shared = 3 * shape.hidden * experts.shared_width
    gates = shape.hidden * (experts.count + (1 if experts.shared_gate else 0))
    return experts.count * one + shared + gates, experts.used * one + shared + gates
