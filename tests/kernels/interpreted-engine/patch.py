"""What vLLM's CPU build lacks for TurboQuant; a test's own patch, not part of the catalogue."""

import dataclasses
import os
import sys
import types
from functools import wraps


def choose(original):
    """TurboQuant's backend also on the CPU."""

    @wraps(original)
    def get_attn_backend_cls(cls, selected_backend, attn_selector_config, num_heads=None):
        if str(attn_selector_config.kv_cache_dtype).startswith("turboquant"):
            return "vllm.v1.attention.backends.turboquant_attn.TurboQuantAttentionBackend"
        return original(cls, selected_backend, attn_selector_config, num_heads)

    return get_attn_backend_cls


def layouts(original):
    """The CPU's own order of a cache is one that our kernels take."""

    def supported_kv_cache_layouts(cls):
        from vllm.v1.kv_cache_interface import KVCacheLayout

        return (KVCacheLayout.LBNHC, KVCacheLayout.LBHNC)

    return supported_kv_cache_layouts


def prepare():
    """Triton in the place of vLLM's stand-in, fp32 activations allowed, no self-test on a GPU."""
    # vLLM asks its module for ROCm about the GPU, which loads a second library of kernels where this
    # processor's is not the one of that name (AVX2).
    sys.modules.setdefault("vllm._C", types.ModuleType("vllm._C"))
    sys.path.append(os.environ["KERNELS"])
    for name in [name for name in sys.modules if name.split(".")[0] == "triton"]:
        del sys.modules[name]
    import triton.language  # noqa: F401
    from sndr_overlay_patches.turboquant_grouped_attention import decision

    own = decision._facts

    def facts(config):
        found = own(config)
        return dataclasses.replace(found, against=found.against.replace("activations are torch.float32", ""))

    decision._facts = facts
    decision._failing = lambda facts: ("", True, False)


def flash_attn_varlen_func(
    q, k, v, cu_seqlens_q, cu_seqlens_k, causal, softmax_scale, out=None, return_softmax_lse=False, **rest
):
    """FlashAttention's answers, in float64."""
    import torch

    found, sums = torch.empty_like(q) if out is None else out, torch.empty(q.shape[1], q.shape[0])
    group = q.shape[1] // k.shape[1]
    for i in range(len(cu_seqlens_q) - 1):
        a, b, c, d = *cu_seqlens_q[i : i + 2].tolist(), *cu_seqlens_k[i : i + 2].tolist()
        keys, values = (part[c:d].repeat_interleave(group, 1).double() for part in (k, v))
        scores = torch.einsum("qhd,khd->hqk", q[a:b].double(), keys) * softmax_scale
        if causal:
            scores = scores.masked_fill(torch.ones(b - a, d - c).triu(d - c - b + a + 1).bool(), -torch.inf)
        found[a:b] = torch.einsum("hqk,khd->qhd", scores.softmax(-1), values).to(q.dtype)
        sums[:, a:b] = scores.logsumexp(-1)
    return (found, sums) if return_softmax_lse else found
