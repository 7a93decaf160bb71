"""Bytes of the KV cache: of one token in a layer, of a state, in vLLM and in llama.cpp."""

import math

from engine_host.core.did_you_mean import near_names
from engine_host.core.errors import HostError
from engine_host.engines.vllm.command import KV_CACHE_DTYPES
from engine_host.fit.shapes.model import Layer, ModelShape
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import EngineKind

# ggml: bytes of a block over the elements in it (ggml-common.h).
GGML_ELEMENT = {
    "f32": 4.0,
    "f16": 2.0,
    "bf16": 2.0,
    "q8_0": 34 / 32,
    "q5_1": 24 / 32,
    "q5_0": 22 / 32,
    "q4_1": 20 / 32,
    "q4_0": 18 / 32,
    "iq4_nl": 18 / 32,
}
# Bits of K and V of one element together, and bytes of scales for each token and head (TurboQuantConfig).
TURBOQUANT = {
    "turboquant_k8v4": (12, 4),
    "turboquant_4bit_nc": (8, 6),
    "turboquant_k3v4_nc": (7, 6),
    "turboquant_3bit_nc": (6, 6),
}
# With these a hybrid that drafts keeps its prefix cache (the patch hybrid-speculation-prefix-cache).
PREFIXES_COMPARED = ("turboquant_k8v4", "turboquant_4bit_nc")
# Bits of an element where every token and head has scales of its own (KVQuantMode.is_per_token_head).
PER_TOKEN_HEAD = {"int8_per_token_head": 8, "fp8_per_token_head": 8, "int4_per_token_head": 4}
_ELEMENT = {"float16": 2, "bfloat16": 2, "float32": 4}
_GGML_PADDING = 256


def check_kv_type(engine: EngineKind, kind: str) -> None:
    """Raise HostError(setting_invalid) for what is no KV type of an engine, with the nearest of them."""
    known = KV_CACHE_DTYPES if engine is EngineKind.VLLM else tuple(GGML_ELEMENT)
    if kind in known:
        return
    other = EngineKind.LLAMA_CPP if engine is EngineKind.VLLM else EngineKind.VLLM
    there = tuple(GGML_ELEMENT) if engine is EngineKind.VLLM else KV_CACHE_DTYPES
    if kind in there:
        raise HostError(
            Reason.SETTING_INVALID,
            tr(
                "{engine} has no KV type {kind}; {other} has.",
                engine=engine.value,
                kind=kind,
                other=other.value,
            ),
            fix=tr(
                "Take other files of the model, which {other} reads, with --engine {other}; or of {known}.",
                other=other.value,
                known=", ".join(known),
            ),
            evidence={"setting": "kv", "asked": kind, "offered": list(known)},
        )
    near = near_names(kind, known, 3)
    meant = tr("Did you mean {near}? ", near=" or ".join(near)) if near else ""
    raise HostError(
        Reason.SETTING_INVALID,
        tr("{engine} has no KV type {kind}, as far as is known here.", engine=engine.value, kind=kind),
        fix=tr("{meant}There are {known}.", meant=meant, known=", ".join(known)),
        evidence={"setting": "kv", "asked": kind, "offered": list(known)},
    )


def heads_on_gpu(shape: ModelShape, tp: int) -> int:
    """KV heads that one GPU keeps: with more GPUs than heads each head is kept several times."""
    return max(1, math.ceil(shape.kv_heads / tp))


def slot_bytes(shape: ModelShape, kv_cache_dtype: str) -> int:
    """Bytes of one token in one KV head of one layer in vLLM. Raises HostError(kv_type_unsupported)."""
    if kv_cache_dtype in TURBOQUANT:
        bits, scales = TURBOQUANT[kv_cache_dtype]
        return shape.head_dim * bits // 8 + scales
    if kv_cache_dtype == "auto":
        return 2 * shape.head_dim * shape.element
    if kv_cache_dtype in PER_TOKEN_HEAD:
        # A float32 scale each for the keys and the values of a token and head (AttentionSpec).
        return 2 * shape.head_dim * PER_TOKEN_HEAD[kv_cache_dtype] // 8 + 2 * 4
    if kv_cache_dtype.startswith("fp8") or kv_cache_dtype == "int8":
        return 2 * shape.head_dim
    if kv_cache_dtype in _ELEMENT:
        return 2 * shape.head_dim * _ELEMENT[kv_cache_dtype]
    raise HostError(
        Reason.KV_TYPE_UNSUPPORTED,
        tr("The size of a {kv_cache_dtype} KV cache is not known here.", kv_cache_dtype=kv_cache_dtype),
        fix="Choose auto, fp8 or a TurboQuant type.",
        evidence={"kv_cache_dtype": kv_cache_dtype},
    )


def token_bytes(shape: ModelShape, kv_cache_dtype: str, tp: int = 1) -> int:
    """Bytes of one token in one attention layer on one GPU in vLLM."""
    if shape.latent is not None:
        # One latent vector for all heads, on every GPU.
        return (shape.latent.rank + shape.latent.rope_dim) * _ELEMENT.get(kv_cache_dtype, shape.element)
    return heads_on_gpu(shape, tp) * slot_bytes(shape, kv_cache_dtype)


def state_bytes(shape: ModelShape, tp: int = 1, draft_tokens: int = 0) -> int:
    """Bytes of the state of one stream in one gated-delta or Mamba layer on one GPU; 0 for a model without.

    Convolution: (kernel − 1 + drafts) × channels; recurrent: heads × size of a head × size of a state
    (vLLM, MambaStateShapeCalculator.gated_delta_net_state_shape and mamba2_state_shape).
    """
    if (mamba := shape.mamba) is not None:
        # With fewer groups than GPUs each GPU keeps one (extra_groups_for_head_shards).
        groups = max(1, mamba.groups // tp)
        channels = mamba.heads * mamba.head_dim // tp + 2 * groups * mamba.state
        convolution = channels * (mamba.conv_kernel - 1 + draft_tokens) * shape.element
        return convolution + mamba.heads // tp * mamba.head_dim * mamba.state * mamba.state_bytes
    delta = shape.gated_delta
    if delta is None:
        return 0
    convolution = delta.conv_width // tp * (delta.conv_kernel - 1 + draft_tokens) * shape.element
    return convolution + delta.value_heads // tp * delta.value_dim * delta.key_dim * delta.state_bytes


def ggml_token_bytes(shape: ModelShape, kv_type_k: str, kv_type_v: str) -> float:
    """Bytes of one token in one attention layer in llama.cpp. Raises HostError(kv_type_unsupported)."""
    unknown = [kind for kind in (kv_type_k, kv_type_v) if kind not in GGML_ELEMENT]
    if unknown:
        raise HostError(
            Reason.KV_TYPE_UNSUPPORTED,
            tr("The size of a {unknown} KV cache is not known here.", unknown=unknown[0]),
            fix=tr("Choose one of {ggml_element}.", ggml_element=", ".join(GGML_ELEMENT)),
            evidence={"kv_type": unknown[0]},
        )
    keys, values = shape.head_dim, shape.value_dim or shape.head_dim
    return shape.kv_heads * (keys * GGML_ELEMENT[kv_type_k] + values * GGML_ELEMENT[kv_type_v])


def ggml_cells(context: int) -> int:
    """KV cells of one stream: llama_context pads a context to 256 tokens."""
    return math.ceil(context / _GGML_PADDING) * _GGML_PADDING


def ggml_window_cells(context: int, window: int, batch: int) -> int:
    """Cells of a layer with a window: the window and one batch, padded to 256 (llama_kv_cache_iswa)."""
    return min(ggml_cells(context), ggml_cells(min(context, window + batch)))


def ggml_state_bytes(shape: ModelShape) -> int:
    """Bytes of one stream's states over all gated-delta layers in llama.cpp, which keeps both as f32."""
    delta = shape.gated_delta
    if delta is None:
        return 0
    convolution = (delta.conv_kernel - 1) * delta.conv_width
    recurrent = delta.value_heads * delta.value_dim * delta.key_dim
    return shape.count(Layer.GATED_DELTA) * 4 * (convolution + recurrent)
