"""Bytes of the KV cache: of one token, of a block, and how many tokens a pool holds, as vLLM counts them."""

import math
from dataclasses import dataclass

from engine_host.core.errors import HostError
from engine_host.fit.shapes.model import Layer, ModelShape
from engine_host.protocol.errors import Reason

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
# Bits of an element where every token and head has scales of its own (KVQuantMode.is_per_token_head).
PER_TOKEN_HEAD = {"int8_per_token_head": 8, "fp8_per_token_head": 8, "int4_per_token_head": 4}
_ELEMENT = {"float16": 2, "bfloat16": 2, "float32": 4}
# The smallest block of vLLM's attention: the CPU's kernels want 128 tokens, FlashAttention and Triton 16.
SMALLEST_BLOCK = {"cpu": 128, "cuda": 16}
_MORE_LAYERS = 1.5
# At each end of a dense model, TurboQuant leaves so many layers alone (get_boundary_skip_layers).
BOUNDARY = 2
_GGML_PADDING = 256


@dataclass(frozen=True, slots=True)
class Pool:
    """The division of one GPU's KV cache into blocks by vLLM; `sliding_block_tokens` of layers with a window.

    Every group of layers draws from one pool; `block_bytes` is a page in each layer of a group. A stream
    takes `state_blocks` blocks for its states of fixed size, whatever its length.
    """

    block_tokens: int
    page_bytes: int
    layers: int
    full_groups: int
    sliding_groups: int
    state_blocks: int
    window_tokens: int = 0
    # Layers that TurboQuant leaves as they are; they share the blocks of the others, with larger pages.
    native_layers: int = 0
    native_page_bytes: int = 0
    sliding_block_tokens: int = 0

    @property
    def block_bytes(self) -> int:
        """Bytes of one block."""
        compressed = self.layers - self.native_layers
        return self.page_bytes * compressed + self.native_page_bytes * self.native_layers

    def stream_blocks(self, context: int) -> int:
        """Blocks of one stream that is this long."""
        full = math.ceil(context / self.block_tokens)
        near = self.sliding_block_tokens or self.block_tokens
        sliding = math.ceil(min(self.window_tokens, context) / near) + 1
        return full * self.full_groups + sliding * self.sliding_groups + self.state_blocks

    def blocks(self, size: int) -> int:
        """Return the number of blocks in so many bytes."""
        return size // self.block_bytes

    def tokens(self, size: int, context: int) -> int:
        """Return the size of the cache as vLLM logs it: streams of this length, times the length."""
        return int(self.blocks(size) / self.stream_blocks(context) * context)

    def streams(self, size: int, context: int) -> int:
        """Return the number of streams of this length that fit."""
        return self.blocks(size) // self.stream_blocks(context)

    def longest(self, size: int, streams: int, limit: int) -> int:
        """The longest context, up to `limit`, that this many streams can have; 0 when not even one block."""
        fits, fails = 0, limit + 1
        while fails - fits > 1:
            middle = (fits + fails) // 2
            if self.stream_blocks(middle) * streams <= self.blocks(size):
                fits = middle
            else:
                fails = middle
        return fits


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
        f"The size of a {kv_cache_dtype} KV cache is not known here.",
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
    """Bytes of the state of one stream in one gated-delta layer on one GPU; 0 for a model without them.

    Convolution: (kernel − 1 + drafts) × channels; recurrent: value heads × value size × key size
    (vLLM, MambaStateShapeCalculator.gated_delta_net_state_shape).
    """
    delta = shape.gated_delta
    if delta is None:
        return 0
    convolution = delta.conv_width // tp * (delta.conv_kernel - 1 + draft_tokens) * shape.element
    return convolution + delta.value_heads // tp * delta.value_dim * delta.key_dim * delta.state_bytes


def vllm_pool(
    shape: ModelShape,
    kv_cache_dtype: str,
    *,
    build: str = "cuda",
    tp: int = 1,
    draft_tokens: int = 0,
    mtp: bool = False,
    prefix_caching: bool = False,
    batched_tokens: int = 2048,
    spared_layers: bool = True,
) -> Pool:
    """Compute the KV blocks of vLLM 0.26 and 0.32: pages of one size, groups of as many layers each.

    With states in the model, the attention block grows until its page holds a state, and states are padded to
    that page (Platform._align_hybrid_block_size, _get_kv_cache_groups_uniform_page_size). `mtp`: the model's
    drafting layers run and keep a cache of their own. Where layers with a window have other heads than the
    full ones, blocks of the smaller page grow to the larger page (unify_kv_cache_spec_page_size).
    `spared_layers`: TurboQuant leaves the layers at both ends of a dense model as they are.
    """
    smallest = SMALLEST_BLOCK[build]
    per_token = token_bytes(shape.full, kv_cache_dtype, tp)
    near = token_bytes(shape, kv_cache_dtype, tp)
    state = state_bytes(shape, tp, draft_tokens)
    block_tokens = max(smallest, smallest * math.ceil(state / per_token / smallest)) if state else smallest
    counts = {
        Layer.FULL: shape.count(Layer.FULL) + (shape.mtp_layers if mtp else 0),
        Layer.SLIDING: shape.count(Layer.SLIDING),
        Layer.GATED_DELTA: shape.count(Layer.GATED_DELTA),
    }
    there = [count for count in counts.values() if count]
    layers = max(there) if max(there) < _MORE_LAYERS * min(there) else min(there)
    groups = {kind: math.ceil(count / layers) for kind, count in counts.items()}
    only_full = len(there) == 1 and counts[Layer.FULL] > 0
    spared = spared_layers and only_full and kv_cache_dtype in TURBOQUANT
    native = min(2 * BOUNDARY, shape.count(Layer.FULL)) if spared else 0
    if native:
        # The blocks grow until a page of as many elements of one byte covers the smallest native page
        # (Platform._align_heterogeneous_kv_block_size, which asks the backend of the first layer).
        block_tokens = smallest * math.ceil(token_bytes(shape, "auto", tp) / token_bytes(shape, "fp8", tp))
    page, sliding_tokens = block_tokens * per_token, 0
    if shape.count(Layer.SLIDING) and shape.count(Layer.FULL) and near != per_token:
        page = smallest * max(per_token, near)
        # A page that does not divide the larger one is padded to it, and holds no more tokens.
        block_tokens = (
            smallest * (near // per_token) if near > per_token and not near % per_token else smallest
        )
        grows = per_token > near and not per_token % near
        sliding_tokens = smallest * (per_token // near) if grows else smallest
    # Without prefix caching a stream has one state; with it, one more at the last block's end.
    states = (2 if prefix_caching else 1) + draft_tokens
    return Pool(
        block_tokens=block_tokens,
        page_bytes=page,
        layers=layers,
        full_groups=groups[Layer.FULL],
        sliding_groups=groups[Layer.SLIDING],
        state_blocks=groups[Layer.GATED_DELTA] * states,
        window_tokens=(shape.window or 1) - 1 + batched_tokens,
        native_layers=native,
        native_page_bytes=block_tokens * token_bytes(shape, "auto", tp) if native else 0,
        sliding_block_tokens=sliding_tokens,
    )


def ggml_token_bytes(shape: ModelShape, kv_type_k: str, kv_type_v: str) -> float:
    """Bytes of one token in one attention layer in llama.cpp. Raises HostError(kv_type_unsupported)."""
    unknown = [kind for kind in (kv_type_k, kv_type_v) if kind not in GGML_ELEMENT]
    if unknown:
        raise HostError(
            Reason.KV_TYPE_UNSUPPORTED,
            f"The size of a {unknown[0]} KV cache is not known here.",
            fix=f"Choose one of {', '.join(GGML_ELEMENT)}.",
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
