"""The shape of a model as the metadata of its GGUF file say it; nothing is guessed."""

from engine_host.core.errors import HostError
from engine_host.fit.shapes.model import LARGEST, Experts, GatedDelta, Layer, ModelShape, encoder
from engine_host.library.checkpoint import MAX_LAYERS
from engine_host.library.gguf import GgufInfo
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr


def gguf_shape(info: GgufInfo) -> ModelShape:
    """The shape in a GGUF file's metadata.

    A sliding window is not among it: which layers have one is built into llama.cpp, so such a layer counts as
    full attention. Raises HostError(unsupported) that names what is missing.
    """
    if not info.causal:
        raise encoder(f"{info.architecture}.attention.causal")
    layers = _need(info, "block_count", info.layers)
    if max(layers, info.mtp_layers) > MAX_LAYERS:
        raise _unknown(f"{info.architecture}.block_count", "is larger than that of any model")
    heads = _need(info, "attention.head_count", info.heads)
    hidden = _need(info, "embedding_length", info.embedding_length)
    delta = _gated_delta(info)
    interval = info.full_attention_interval
    if delta is not None and interval is None:
        raise _unknown("full_attention_interval")
    return ModelShape(
        layers=tuple(
            Layer.GATED_DELTA if delta is not None and (place + 1) % (interval or 1) else Layer.FULL
            for place in range(layers)
        ),
        hidden=hidden,
        heads=heads,
        kv_heads=info.kv_heads or heads,
        head_dim=_need(info, "attention.key_length", info.head_dim),
        value_dim=info.value_dim,
        vocabulary=_need(info, "vocab_size", info.vocabulary),
        feed_forward=info.feed_forward or 0,
        gated_delta=delta,
        experts=_experts(info),
        mtp_layers=info.mtp_layers,
        # Queries come with a gate in every hybrid of this kind (qwen35, qwen35moe, qwen3next).
        output_gate=delta is not None,
    )


def unknown_of(info: GgufInfo) -> tuple[str, ...]:
    """List the facts that the metadata leave open, for people."""
    found = []
    if info.sliding_window is not None:
        found.append(
            f"which layers have the window of {info.sliding_window} tokens; all are counted as full "
            "attention, so the KV cache is an upper bound"
        )
    fewest, most = info.fewest_kv_heads, info.kv_heads
    # Layers of a hybrid that keep a state have none, and are not counted among the others.
    if fewest is not None and most is not None and fewest < most and not (info.hybrid and fewest == 0):
        found.append(
            f"the cache of layers that have fewer heads for keys than others, {fewest} to {most}; all are "
            f"counted with {most}, so the KV cache is an upper bound"
        )
    return tuple(found)


def _gated_delta(info: GgufInfo) -> GatedDelta | None:
    if not info.ssm:
        return None
    names = ("conv_kernel", "inner_size", "state_size", "time_step_rank", "group_count")
    kernel, inner, state, rank, groups = (_need(info, f"ssm.{name}", info.ssm.get(name)) for name in names)
    return GatedDelta(
        key_heads=groups,
        value_heads=rank,
        key_dim=state,
        value_dim=inner // rank,
        conv_kernel=kernel,
    )


def _experts(info: GgufInfo) -> Experts | None:
    if info.experts is None:
        return None
    used = _need(info, "expert_used_count", info.experts_used)
    width = _need(info, "expert_feed_forward_length", info.expert_feed_forward or info.feed_forward)
    return Experts(info.experts, used, width, info.layers or 0)


def _need(info: GgufInfo, name: str, value: int | None) -> int:
    if not value:
        raise _unknown(f"{info.architecture}.{name}")
    if value > LARGEST:
        raise _unknown(f"{info.architecture}.{name}", "is larger than that of any model")
    return value


def _unknown(name: str, why: str = "") -> HostError:
    says = f"{name} {why}" if why else tr("its file does not say {name}", name=name)
    return HostError(
        Reason.UNSUPPORTED,
        tr("What this model needs cannot be computed: {says}.", says=says),
        cause="A figure that is not known is not guessed.",
        fix="Start it: the engine measures what it needs.",
        evidence={"key": name},
    )
