"""The shape of a language model, as its own config.json says it; nothing is guessed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from engine_host.core.errors import HostError
from engine_host.library.checkpoint import MAX_LAYERS
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr


class Layer(StrEnum):
    """The kind of a layer by the cache it keeps: every token, the newest, those of a chunk, or a state."""

    FULL = "full attention"
    SLIDING = "sliding window"
    CHUNKED = "local chunks"
    GATED_DELTA = "gated delta"
    MAMBA = "mamba"


RECURRENT = frozenset({Layer.GATED_DELTA, Layer.MAMBA})
"""Layers whose state has a fixed size, however long the stream."""

_LAYERS = {
    "full_attention": Layer.FULL,
    "attention": Layer.FULL,
    "sliding_attention": Layer.SLIDING,
    "chunked_attention": Layer.CHUNKED,
    "linear_attention": Layer.GATED_DELTA,
    "mamba": Layer.MAMBA,
}
# Where a config has no list of its layers: each so many layers is full, and the others are of the other kind;
# the key that may say another number, and the usual one (the configurations of Transformers).
_PATTERNS = {
    "gemma2": (Layer.SLIDING, "sliding_window_pattern", 2),
    "gemma3": (Layer.SLIDING, "sliding_window_pattern", 6),
    "gemma3_text": (Layer.SLIDING, "sliding_window_pattern", 6),
    "gemma3n_text": (Layer.SLIDING, "sliding_window_pattern", 5),
    "gemma4_text": (Layer.SLIDING, "sliding_window_pattern", 6),
    "gpt_oss": (Layer.SLIDING, "sliding_window_pattern", 2),
    "cohere2": (Layer.SLIDING, "sliding_window_pattern", 4),
    "exaone4": (Layer.SLIDING, "sliding_window_pattern", 4),
    "olmo3": (Layer.SLIDING, "sliding_window_pattern", 4),
    "llama4_text": (Layer.CHUNKED, "no_rope_layer_interval", 4),
}
# A window in their config is not in use unless it says so.
_WINDOW_OFF = ("qwen2", "qwen3", "smollm3")
# Windows that every model of the kind has, where the config leaves them out.
_WINDOWS = {"gpt_oss": 128, "gemma3n_text": 512}
# No size of a model is larger, and the product of them all stays a number that can be computed with.
LARGEST = 1 << 32
# Parts of names of architectures whose tokens see the later ones, too.
_ENCODERS = ("Bert", "BERT", "Roberta", "Gte", "T5Encoder", "Bidirectional", "ElectraModel")
_ELEMENT = {"float32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True, slots=True)
class GatedDelta:
    """Heads and sizes of gated-delta layers; `state_bytes` of one element of the recurrent state."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_kernel: int
    state_bytes: int = 4

    @property
    def conv_width(self) -> int:
        """Channels that go through the convolution: queries, keys and values."""
        return 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim


@dataclass(frozen=True, slots=True)
class Mamba:
    """Heads and sizes of Mamba-2 layers; `state_bytes` of one element of the recurrent state."""

    heads: int
    head_dim: int
    state: int
    groups: int
    conv_kernel: int
    state_bytes: int = 2


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention: what one token keeps, whatever the number of heads.

    The other sizes are of its projections; a query rank of 0 is a query without one.
    """

    rank: int
    rope_dim: int
    query_rank: int = 0
    nope_dim: int = 0
    value_dim: int = 0


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts: how many there are, how many a token uses, and their widths.

    `layers` have one; the others have a feed-forward part alone.
    """

    count: int
    used: int
    width: int
    layers: int
    shared_width: int = 0
    shared_gate: bool = False


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A decoder by its numbers; `element` is bytes of one unquantised value.

    `global_kv_heads` and `global_head_dim` are of its full-attention layers where they differ. `window` is of
    layers with one, or of local chunks. The last `shared_kv` layers read the cache of others.
    """

    layers: tuple[Layer, ...]
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    feed_forward: int
    element: int = 2
    window: int | None = None
    gated_delta: GatedDelta | None = None
    mamba: Mamba | None = None
    latent: Latent | None = None
    experts: Experts | None = None
    mtp_layers: int = 0
    tied: bool = False
    output_gate: bool = False
    value_dim: int | None = None
    global_kv_heads: int | None = None
    global_head_dim: int | None = None
    shared_kv: int = 0
    # Numbers of the table that gives each layer an input of its own (Gemma 3n and 4's small ones).
    layer_tables: int = 0

    @property
    def full(self) -> "ModelShape":
        """The same with the heads of its full-attention layers."""
        if self.global_kv_heads is None and self.global_head_dim is None:
            return self
        heads, size = self.global_kv_heads or self.kv_heads, self.global_head_dim or self.head_dim
        return replace(self, kv_heads=heads, head_dim=size, global_kv_heads=None, global_head_dim=None)

    def count(self, kind: Layer) -> int:
        """Return the number of layers of one kind; drafting layers are not among them."""
        return self.layers.count(kind)

    def cached(self, kind: Layer) -> int:
        """Return the number of layers of one kind that keep a cache of their own."""
        return self.layers[: len(self.layers) - self.shared_kv].count(kind)


def read_shape(config: Mapping[str, Any]) -> ModelShape:
    """The shape in a config.json; a model that also sees keeps its language model one level down.

    Raises HostError(unsupported) that names what is missing or not known here.
    """
    inner = config.get("text_config")
    text: Mapping[str, Any] = {**config, **inner} if isinstance(inner, Mapping) else config
    if key := _sees_ahead(config, text):
        raise encoder(key)
    heads = _need(text, "num_attention_heads")
    hidden = _need(text, "hidden_size")
    layers = _layers(text, _need(text, "num_hidden_layers"))
    chunked = Layer.CHUNKED in layers
    kind = str(text.get("model_type"))
    window = _count(text, "attention_chunk_size" if chunked else "sliding_window") or _WINDOWS.get(kind)
    # Gemma 4: fewer and wider heads where keys serve as values, wider ones in every full-attention layer.
    uneven = Layer.SLIDING in layers and Layer.FULL in layers
    shared = uneven and bool(text.get("attention_k_eq_v", False))
    if Layer.SLIDING in layers and window is None:
        raise _unknown("sliding_window", tr("some of its layers attend within a window of unknown size"))
    return ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=_count(text, "num_key_value_heads") or heads,
        head_dim=_count(text, "head_dim") or hidden // heads,
        vocabulary=_need(text, "vocab_size"),
        feed_forward=_count(text, "intermediate_size") or 0,
        element=_ELEMENT.get(str(text.get("dtype") or text.get("torch_dtype") or "bfloat16"), 2),
        window=window if {Layer.SLIDING, Layer.CHUNKED} & {*layers} else None,
        gated_delta=_gated_delta(text) if Layer.GATED_DELTA in layers else None,
        mamba=_mamba(text) if Layer.MAMBA in layers else None,
        latent=_latent(text),
        experts=_experts(text, len(layers)),
        mtp_layers=_mtp_layers(text),
        tied=bool(text.get("tie_word_embeddings", False)),
        output_gate=bool(text.get("attn_output_gate", False)),
        global_kv_heads=_count(text, "num_global_key_value_heads") if shared else None,
        global_head_dim=_count(text, "global_head_dim") if uneven else None,
        shared_kv=min(_count(text, "num_kv_shared_layers") or 0, len(layers)),
        layer_tables=_layer_tables(text, len(layers)),
    )


def encoder(key: str) -> HostError:
    """unsupported: a model whose tokens see the later ones keeps no KV cache and reads a text at once."""
    return _unknown(
        key, tr("it reads a text at once, as BERT does, and starts of such models are not predicted yet")
    )


def _sees_ahead(config: Mapping[str, Any], text: Mapping[str, Any]) -> str:
    """Return the key that says that each token sees the later ones; empty for a decoder.

    As vLLM tells them apart (ModelConfig.attn_type).
    """
    names = config.get("architectures")
    said = " ".join(map(str, names)) if isinstance(names, Sequence) and not isinstance(names, str) else ""
    if any(part in said for part in _ENCODERS):
        return "architectures"
    if text.get("is_causal") is False:
        return "is_causal"
    return "use_bidirectional_attention" if text.get("use_bidirectional_attention") is True else ""


def _layers(text: Mapping[str, Any], number: int) -> tuple[Layer, ...]:
    if number > MAX_LAYERS:
        raise _unknown("num_hidden_layers", tr("its config says that it has {number} layers", number=number))
    kinds = text.get("layer_types")
    if isinstance(kinds, Sequence) and not isinstance(kinds, str):
        if len(kinds) != number:
            raise _unknown(
                "layer_types",
                tr("it lists {count} layers, and there are {number}", count=len(kinds), number=number),
            )
        named = [kind if isinstance(kind, str) else "no word" for kind in kinds]
        if unknown := sorted({kind[:40] for kind in named if kind not in _LAYERS}):
            raise _unknown(
                "layer_types",
                tr("it has layers of an unknown kind: {unknown}", unknown=", ".join(unknown[:8])),
            )
        found = tuple(_LAYERS[kind] for kind in named)
        if "mamba_n_heads" in text:
            # Granite's word for them is that of gated-delta layers.
            return tuple(Layer.MAMBA if kind is Layer.GATED_DELTA else kind for kind in found)
        return found
    if interval := _count(text, "full_attention_interval"):
        return tuple(
            Layer.FULL if (place + 1) % interval == 0 else Layer.GATED_DELTA for place in range(number)
        )
    if "hybrid_override_pattern" in text:
        raise _unknown(
            "hybrid_override_pattern", tr("layers in the pattern of Nemotron-H are not known here")
        )
    kind = str(text.get("model_type"))
    if kind in _PATTERNS:
        other, key, usual = _PATTERNS[kind]
        every = _count(text, key) or usual
        return tuple(Layer.FULL if (place + 1) % every == 0 else other for place in range(number))
    # Else every layer is alike: with a window when there is one that is in use.
    windowed = _count(text, "sliding_window") and text.get("use_sliding_window", kind not in _WINDOW_OFF)
    return (Layer.SLIDING if windowed else Layer.FULL,) * number


def _mtp_layers(text: Mapping[str, Any]) -> int:
    found = _count(text, "mtp_num_hidden_layers") or _count(text, "num_nextn_predict_layers") or 0
    if found > MAX_LAYERS:
        raise _unknown(
            "num_nextn_predict_layers", tr("its config says that {found} layers draft", found=found)
        )
    return found


def _layer_tables(text: Mapping[str, Any], layers: int) -> int:
    rows, width = (_count(text, f"{name}_size_per_layer_input") for name in ("vocab", "hidden"))
    return layers * rows * width if rows and width else 0


def _mamba(text: Mapping[str, Any]) -> Mamba:
    heads = _need(text, "mamba_n_heads")
    head_dim = _count(text, "mamba_d_head")
    return Mamba(
        heads=heads,
        head_dim=head_dim or (_count(text, "mamba_expand") or 2) * _need(text, "hidden_size") // heads,
        state=_need(text, "mamba_d_state"),
        groups=_count(text, "mamba_n_groups") or 1,
        conv_kernel=_count(text, "mamba_d_conv") or 4,
        # vLLM keeps both states in the type of the model, unless the config names another.
        state_bytes=_ELEMENT.get(str(text.get("mamba_ssm_dtype") or text.get("dtype")), 2),
    )


def _gated_delta(text: Mapping[str, Any]) -> GatedDelta:
    return GatedDelta(
        key_heads=_need(text, "linear_num_key_heads"),
        value_heads=_need(text, "linear_num_value_heads"),
        key_dim=_need(text, "linear_key_head_dim"),
        value_dim=_need(text, "linear_value_head_dim"),
        conv_kernel=_need(text, "linear_conv_kernel_dim"),
        state_bytes=_ELEMENT.get(str(text.get("mamba_ssm_dtype", "float32")), 4),
    )


def _latent(text: Mapping[str, Any]) -> Latent | None:
    rank = _count(text, "kv_lora_rank")
    if rank is None:
        return None
    sizes = (_count(text, name) or 0 for name in ("q_lora_rank", "qk_nope_head_dim", "v_head_dim"))
    return Latent(rank, _need(text, "qk_rope_head_dim"), *sizes)


def _experts(text: Mapping[str, Any], layers: int) -> Experts | None:
    names = ("num_experts", "n_routed_experts", "num_local_experts")
    count = next((found for name in names if (found := _count(text, name))), None)
    if count is None:
        return None
    used = _count(text, "num_experts_per_tok") or _need(text, "top_k_experts")
    width = _count(text, "moe_intermediate_size") or _need(text, "intermediate_size")
    shared = _count(text, "shared_expert_intermediate_size") or _count(text, "shared_intermediate_size")
    gated = shared is not None
    if shared is None and (number := _count(text, "n_shared_experts")):
        shared = number * width
    if shared is None and text.get("model_type") == "llama4_text":
        shared = width
    # DeepSeek and GLM begin with layers without a mixture, Llama 4 has one in each so many layers.
    with_experts = max(layers - (_count(text, "first_k_dense_replace") or 0), 0)
    if interval := _count(text, "interleave_moe_layer_step"):
        with_experts = layers // interval
    return Experts(count, used, width, with_experts, shared or 0, gated)


def _count(text: Mapping[str, Any], name: str) -> int | None:
    value = text.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        return None
    if value > LARGEST:
        raise _unknown(name, tr("its config says {name} is larger than that of any model", name=name))
    return value


def _need(text: Mapping[str, Any], name: str) -> int:
    value = _count(text, name)
    if value is None:
        raise _unknown(name, tr("its config has no {name}", name=name))
    return value


def _unknown(name: str, why: str) -> HostError:
    return HostError(
        Reason.UNSUPPORTED,
        tr("What this model needs cannot be computed: {why}.", why=why),
        cause="A figure that is not known is not guessed.",
        fix="Start it: the engine measures what it needs.",
        evidence={"key": name},
    )
