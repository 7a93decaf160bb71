"""Decide if an engine's TurboQuant layers run on our kernels: all or none, before anything is stored.

The cache has another order of bytes than vLLM's, so a layer that stores with one must read with it. Whatever
the kernels were not written for, and a GPU on which they do not compute what they should, keeps vLLM's path;
with drafts the start is refused instead, since that path then answers wrongly (docs/kernels.md).
"""

import functools
import os
from dataclasses import dataclass, field

ID = "turboquant-grouped-attention"
# The host sets it where the person asked for vLLM's own kernels with drafts, wrong answers and all.
ALLOWED = "SNDR_ALLOW_WRONG_ANSWERS"
PRESETS = {"turboquant_k8v4": "k8v4", "turboquant_4bit_nc": "4bit_nc"}
MOST_ROWS = 64
# e4m3 in tensor cores.
NATIVE_FP8 = (8, 9)


@dataclass(frozen=True)
class Decision:
    """used: our kernels run. why: what speaks against it. threshold: query tokens that are decode.

    native_fp8, hopper: the tensor cores take fp8; are Hopper's, and the kernel written for these is right.
    invariant: vLLM's batch-invariant mode; a request's answer then does not depend on what runs beside it, on
    how its prompt was cut or on drafts, to the bit.
    """

    used: bool
    why: str = ""
    threshold: int = 1
    native_fp8: bool = True
    hopper: bool = False
    invariant: bool = False


@dataclass(frozen=True)
class Facts:
    """The input of the decision; layers: (preset, head size, query heads, KV heads) of each kind."""

    layers: frozenset = field(default_factory=frozenset)
    threshold: int = 1
    block_sizes: tuple = (16,)
    against: str = ""
    invariant: bool = False
    dtype: str = "torch.bfloat16"
    most_tokens: int = 8192


def decide(vllm_config):
    """The decision for an engine; its layers have to be there.

    RuntimeError where vLLM's own kernels would stay and must not: in batch-invariant mode, since they are
    not, and with drafts, since answers are then wrong. The host reads the reason off this sentence
    (engine_host/engines/vllm/log.py).
    """
    decision = _decided(_facts(vllm_config))
    if decision.used:
        return decision
    if decision.invariant:
        raise RuntimeError(
            f"VLLM_BATCH_INVARIANT is set and {ID} cannot be used: {decision.why}. "
            "vLLM's own TurboQuant kernels are not batch-invariant. Unset it, or choose another KV type."
        )
    if vllm_config.speculative_config is not None and not os.environ.get(ALLOWED):
        raise RuntimeError(
            f"Speculation is on and {ID} cannot be used: {decision.why}. "
            "vLLM's own TurboQuant kernels answer wrongly with drafts. Switch one of the two off."
        )
    return decision


def turboquant_layers(vllm_config):
    """vLLM's TurboQuant layers by name."""
    from vllm.v1.attention.backends.turboquant_attn import TurboQuantAttentionImpl

    layers = vllm_config.compilation_config.static_forward_context
    return {
        name: layer
        for name, layer in layers.items()
        if isinstance(getattr(layer, "impl", None), TurboQuantAttentionImpl)
    }


def _facts(vllm_config):
    from vllm import envs
    from vllm.v1.attention.backends import turboquant_attn as backend

    layers = turboquant_layers(vllm_config)
    speculative = vllm_config.speculative_config
    drafts = getattr(speculative, "num_speculative_tokens", None) or 0
    parallel = vllm_config.parallel_config
    against = [
        what
        for what, found in (
            ("there is no TurboQuant layer", not layers),
            (f"{drafts} draft tokens are more than 7", drafts > 7),
            ("parallel drafting", getattr(speculative, "parallel_drafting", False)),
            # Its first pass has one token more a request than verification, with lengths that lack it.
            ("a draft model of its own", getattr(speculative, "method", None) == "draft_model"),
            ("decode context parallelism", parallel.decode_context_parallel_size > 1),
            ("dual batch overlap", getattr(parallel, "enable_dbo", False)),
            ("KV caches are handed to other engines", vllm_config.kv_transfer_config is not None),
            ("there is no FlashAttention", not backend._HAS_FLASH_ATTN),
        )
        if found
    ]
    kinds = set()
    for name, layer in layers.items():
        impl = layer.impl
        if type(impl) is not backend.TurboQuantAttentionImpl:
            against.append(f"{name} is a {type(impl).__name__}")
        elif getattr(impl, "_soa_store", False) or getattr(impl, "sinks", None) is not None:
            against.append(f"{name} stores in another layout or has sinks")
        elif getattr(impl, "sliding_window", None) or getattr(layer, "sliding_window", None):
            against.append(f"{name} has a sliding window")
        elif getattr(layer, "kv_sharing_target_layer_name", None):
            against.append(f"{name} reads another layer's cache")
        elif impl.fa_version not in (2, 3):
            against.append(f"FlashAttention {impl.fa_version}")
        else:
            kinds.add((impl.kv_cache_dtype, impl.head_size, impl.num_heads, impl.num_kv_heads))
    dtype = str(vllm_config.model_config.dtype)
    if dtype not in ("torch.bfloat16", "torch.float16"):
        against.append(f"activations are {dtype}")
    size = vllm_config.cache_config.block_size or 16
    # A larger block is split into the largest that divides it.
    fitting = [known for known in (128, 64, 32, 16) if size % known == 0] or [16]
    return Facts(
        frozenset(kinds),
        1 + drafts,
        (size if size in fitting else fitting[0],),
        "; ".join(against[:3]),
        bool(envs.VLLM_BATCH_INVARIANT),
        dtype,
        vllm_config.model_config.max_model_len,
    )


@functools.cache
def _decided(facts):
    from vllm.logger import init_logger

    why = facts.against or _unsuited(facts)
    native, hopper = True, False
    if not why:
        why, native, hopper = _failing(facts)
    logger = init_logger("vllm.sndr")
    if why:
        # One line: the host reads it off the log.
        why = " ".join(why.split())
        logger.warning("TurboQuant stays on vLLM's own kernels: %s.", why)
        _note(f"vLLM's own kernels run: {why}")
        return Decision(False, why, invariant=facts.invariant)
    logger.info(
        "TurboQuant runs on grouped kernels, up to %d query tokens a request as decode.", facts.threshold
    )
    name = "the kernels for Hopper" if hopper else "the kernels for every GPU"
    heads = sorted({head_size for _, head_size, _, _ in facts.layers})
    _note(
        f"{name} run, heads of {' and '.join(map(str, heads))}; the self-test passed, up to "
        f"{facts.threshold} tokens a request as decode",
        head_sizes=heads,
        query_tokens=[facts.threshold],
    )
    return Decision(True, "", facts.threshold, native, hopper, facts.invariant)


def _note(detail, **values):
    """Say in the ledger which kernels run, and for which numbers."""
    from sndr_overlay.ledger import LEDGER

    LEDGER.write("note", patch=ID, detail=detail, values=values)


def _unsuited(facts):
    """Name the property that the kernels were not written for; empty if there is none."""
    from .kernels.attention import rows_of
    from .kernels.layout import HEAD_SIZES

    for preset, head_size, heads, kv_heads in sorted(facts.layers):
        if preset not in PRESETS:
            return f"{preset} is not written"
        if head_size not in HEAD_SIZES:
            return f"head size {head_size} is not written"
        if heads % kv_heads:
            return f"{heads} query heads over {kv_heads} KV heads"
        if rows_of(heads, kv_heads, facts.threshold) > MOST_ROWS:
            return f"{heads // kv_heads} query heads a KV head times {facts.threshold} tokens"
    return ""


def _failing(facts):
    """Test the kernels on this GPU; return the fault, native fp8, and the use of Hopper's kernel.

    A compiler that makes wrong code for one GPU is no theory (docs/kernels.md): every kernel runs once on a
    small cache and is compared with float64, which also compiles it before the first request. Where the one
    for Hopper does not hold, the one for every GPU is tried.
    """
    import torch
    from vllm.logger import init_logger

    if not torch.cuda.is_available():
        return "there is no CUDA GPU", True, False
    capability = torch.cuda.get_device_capability()
    if capability < (8, 0):
        return f"SM {capability[0]}.{capability[1]}", True, False
    native = capability >= NATIVE_FP8
    if capability[0] == 9 and _one_kernel(facts):
        why = _wrong(facts, native, True)
        if not why:
            return "", native, True
        init_logger("vllm.sndr").warning("TurboQuant does without its kernel for Hopper: %s.", why)
    return _wrong(facts, native, False), native, False


def _one_kernel(facts):
    """Return True if the kernel for Hopper may be used: in batch-invariant mode not beside the other."""
    from .kernels.attention import always_on_hopper

    return not facts.invariant or all(
        always_on_hopper(PRESETS[preset], *sizes, facts.threshold) for preset, *sizes in facts.layers
    )


def _wrong(facts, native, hopper, device="cuda"):
    """Return the fault that the self-test finds; empty if there is none."""
    from .kernels.attention import fixed_share_of
    from .selftest import MOST_ERROR, rows_that_differ, worst_error

    share = fixed_share_of(facts.most_tokens) if facts.invariant else 0
    for preset, head_size, heads, kv_heads in sorted(facts.layers):
        for block_size in facts.block_sizes:
            shape = PRESETS[preset], head_size, heads, kv_heads, block_size, facts.threshold, native
            how = {"device": device, "hopper": hopper, "dtype": facts.dtype}
            try:
                error = worst_error(*shape, **how, share=share)
                different = facts.invariant and rows_that_differ(*shape, **how)
            except Exception as failed:  # noqa: BLE001 - whatever a compiler raises on a GPU that nobody tried
                return f"the self-test failed with {type(failed).__name__}: {str(failed)[:200]}"
            layer = f"({preset}, {head_size}, {heads}/{kv_heads})"
            if not error < MOST_ERROR:
                return f"the self-test is off by {error:.1e} {layer}"
            if different:
                return f"{different} rows of the self-test depend on the rows beside them {layer}"
    return ""
