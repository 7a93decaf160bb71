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
# Layers that a key of their own describes, in forms that are not known here, where the config lists no kinds.
_OTHER_LAYERS = (
    ("hybrid_override_pattern", "Nemotron-H"),
    ("attn_layer_period", "Jamba"),
    ("linear_attn_config", "Kimi Linear"),
    ("block_configs", "DeciLM"),
    ("block_types", "RecurrentGemma"),
    ("full_attn_idxs", "LFM2"),
)
# What keeps more than keys and values, or less, whatever the layers are.
_OTHER_CACHES = (
    ("is_encoder_decoder", tr("its decoder reads what an encoder wrote")),
    ("cross_attention_layers", tr("some of its layers read an encoder's output")),
    ("index_topk", tr("its sparse attention keeps an index beside the cache")),
    ("use_cla", tr("its layers share caches in a form that is not known here")),
)
# Where a config keeps its language model when that is not all of it.
_INNER = ("text_config", "llm_config", "language_config", "thinker_config")
_DEEPEST = 3
# Their feed-forward part has two matrices; all others have a gate too.
_GATELESS = frozenset(
    {"apertus", "arcee", "falcon", "gpt_neox", "nemotron", "opt", "persimmon", "phi", "starcoder2"}
)
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

    `gated`: the feed-forward part of a layer has three matrices and not two.
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
    gated: bool = True

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
    text = _language_model(config)
    if key := _sees_ahead(config, text):
        raise encoder(key)
    if other := next((one for one in _OTHER_CACHES if text.get(one[0])), None):
        raise _unknown(*other)
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
    head_dim = _count(text, "head_dim") or hidden // heads
    if head_dim == 0:
        raise _unknown("head_dim", tr("its config has more heads than values to divide among them"))
    experts = _experts(text, len(layers))
    return ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=_kv_heads(text, heads),
        head_dim=head_dim,
        vocabulary=_need(text, "vocab_size"),
        feed_forward=_feed_forward(text, hidden),
        element=_ELEMENT.get(str(text.get("dtype") or text.get("torch_dtype") or "bfloat16"), 2),
        window=window if {Layer.SLIDING, Layer.CHUNKED} & {*layers} else None,
        gated_delta=_gated_delta(text) if Layer.GATED_DELTA in layers else None,
        mamba=_mamba(text) if Layer.MAMBA in layers else None,
        latent=_latent(text),
        experts=experts,
        mtp_layers=_mtp_layers(text),
        tied=bool(text.get("tie_word_embeddings", False)),
        output_gate=bool(text.get("attn_output_gate", False)),
        global_kv_heads=_count(text, "num_global_key_value_heads") if shared else None,
        global_head_dim=_count(text, "global_head_dim") if uneven else None,
        shared_kv=_shared_kv(text, len(layers)),
        layer_tables=_layer_tables(text, len(layers)),
        gated=kind not in _GATELESS,
    )


def _language_model(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a config that describes the language model, over what stands around it."""
    text = config
    for _ in range(_DEEPEST):
        inner = next((one for name in _INNER if isinstance(one := text.get(name), Mapping)), None)
        if inner is None:
            return text
        text = {**{name: value for name, value in text.items() if name not in _INNER}, **inner}
    raise _unknown("text_config", tr("its config has too many models inside one another"))


def _kv_heads(text: Mapping[str, Any], heads: int) -> int:
    """The heads that keep keys and values; as many as there are where the config names none."""
    names = ("num_key_value_heads", "num_kv_heads", "num_attention_groups")
    if any(text.get(name) == 0 for name in names):
        raise without(names[0])
    if text.get("model_type") == "falcon" and not text.get("new_decoder_architecture"):
        return 1 if text.get("multi_query", True) else heads
    found = next((found for name in names if (found := _count(text, name))), heads)
    if found > heads:
        raise _unknown(names[0], tr("its config has more heads for keys than for queries"))
    return found


def _shared_kv(text: Mapping[str, Any], layers: int) -> int:
    found = _count(text, "num_kv_shared_layers") or 0
    if found >= layers:
        raise _unknown("num_kv_shared_layers", tr("none of its layers keeps a cache that others could read"))
    return found


def _feed_forward(text: Mapping[str, Any], hidden: int) -> int:
    """The width of the feed-forward parts that are no mixture; 0 where the config names none."""
    names = ("intermediate_size", "ffn_dim", "ffn_hidden_size")
    found = next((found for name in names if (found := _count(text, name))), None)
    if found is None and text.get("model_type") == "falcon":
        return 4 * hidden
    return found or 0


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
    return _unlisted(text, number)


def _unlisted(text: Mapping[str, Any], number: int) -> tuple[Layer, ...]:
    """The layers of a config that does not list their kinds."""
    for key, model in _OTHER_LAYERS:
        if text.get(key):
            raise _unknown(key, tr("layers in the form of {model} are not known here", model=model))
    if (places := text.get("attn_layer_indices")) and isinstance(places, Sequence):
        return tuple(Layer.FULL if place in places else Layer.MAMBA for place in range(number))
    if _count(text, "mamba_d_state"):
        raise _unknown("mamba_d_state", tr("its config does not say which of its layers are Mamba"))
    # MiniMax: 1 is attention, 0 is linear attention, whose state is not known here.
    kinds = text.get("attn_type_list")
    if isinstance(kinds, Sequence) and any(kind != 1 for kind in kinds):
        raise _unknown(
            "attn_type_list", tr("layers in the form of {model} are not known here", model="MiniMax-01")
        )
    kind = str(text.get("model_type"))
    if kind in _PATTERNS:
        other, key, usual = _PATTERNS[kind]
        said = text.get(key)
        # EXAONE writes its pattern out: LLLG.
        every = len(said) if isinstance(said, str) and said else _count(text, key) or usual
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
    names = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts")
    count = next((found for name in names if (found := _count(text, name))), None)
    if count is None:
        if other := next((name for name in text if "expert" in name and _is_several(text[name])), None):
            raise _unknown(other, tr("its mixture of experts is told in a form that is not known here"))
        return None
    used = next(
        (found for name in ("num_experts_per_tok", "moe_k", "moe_topk") if (found := _count(text, name))),
        None,
    )
    used = used or _need(text, "top_k_experts")
    width = _count(text, "moe_intermediate_size") or _need(text, "intermediate_size")
    shared = _count(text, "shared_expert_intermediate_size") or _count(text, "shared_intermediate_size")
    gated = shared is not None
    number = _count(text, "n_shared_experts") or _count(text, "moe_num_shared_experts")
    if shared is None and number:
        shared = number * width
    if shared is None and text.get("model_type") == "llama4_text":
        shared = width
    # DeepSeek and GLM begin with layers without a mixture, Llama 4 has one in each so many layers.
    first = _count(text, "first_k_dense_replace") or _count(text, "moe_layer_start_index") or 0
    with_experts = max(layers - first, 0)
    if interval := _count(text, "interleave_moe_layer_step"):
        with_experts = layers // interval
    return Experts(count, used, width, with_experts, shared or 0, gated)


def _is_several(value: Any) -> bool:
    return type(value) is int and value > 1


def _count(text: Mapping[str, Any], name: str) -> int | None:
    """A size in a config; None where it has none, for which some write null, false, 0 or -1.

    Anything else in its place is no size, and nothing else is put there.
    """
    value = text.get(name)
    if isinstance(value, list) and value and all(one == value[0] for one in value):
        # One number for each layer.
        (value, *_) = value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None or value is False or (type(value) is int and value in {0, -1}):
        return None
    if type(value) is not int or value < 0:
        raise _unknown(name, tr("its config says {name} in a form that is not known here", name=name))
    if value > LARGEST:
        raise _unknown(name, tr("its config says {name} is larger than that of any model", name=name))
    return value


def _need(text: Mapping[str, Any], name: str) -> int:
    value = _count(text, name)
    if value is None:
        raise without(name)
    return value


def without(name: str) -> HostError:
    """unsupported: a config that lacks a figure which is needed."""
    return _unknown(name, tr("its config has no {name}", name=name))


def _unknown(name: str, why: str) -> HostError:
    return HostError(
        Reason.UNSUPPORTED,
        tr("What this model needs cannot be computed: {why}.", why=why),
        cause="A figure that is not known is not guessed.",
        fix="Start it: the engine measures what it needs.",
        evidence={"key": name},
    )
