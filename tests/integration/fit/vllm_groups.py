"""Runs inside vLLM's own Python: how vLLM itself groups layers and counts tokens. JSON in, JSON out."""

import json
import sys
from types import SimpleNamespace
from typing import Any

import torch
from vllm.config.vllm import VllmConfig  # type: ignore[import-not-found]
from vllm.v1.core.kv_cache_utils import (  # type: ignore[import-not-found]
    get_kv_cache_capacity,
    get_kv_cache_config_from_groups,
    get_kv_cache_groups,
)
from vllm.v1.kv_cache_interface import (  # type: ignore[import-not-found]
    ChunkedLocalAttentionSpec,
    FullAttentionSpec,
    KVCacheSpec,
    MambaSpec,
    SlidingWindowSpec,
)
from vllm.v1.kv_cache_layout import KVCacheLayout  # type: ignore[import-not-found]


def spec(layer: dict[str, Any]) -> KVCacheSpec:
    """One layer as its attention module would describe it."""
    kind = layer.pop("kind")
    if kind == "mamba":
        return MambaSpec(
            block_size=layer["block_size"],
            shapes=((layer["state_bytes"],),),
            dtypes=(torch.int8,),
            page_size_padded=layer["page"],
            mamba_cache_mode=layer["mode"],
            num_speculative_blocks=layer["drafts"],
        )
    classes = {
        "full": FullAttentionSpec,
        "sliding": SlidingWindowSpec,
        "chunked": ChunkedLocalAttentionSpec,
    }
    return classes[kind](dtype=torch.bfloat16, **layer)


def counted(asked: dict[str, Any]) -> dict[str, Any]:
    """What vLLM makes of these layers in so many bytes."""
    parallel = SimpleNamespace(
        pipeline_parallel_size=1,
        decode_context_parallel_size=1,
        prefill_context_parallel_size=1,
        tensor_parallel_size=1,
    )
    scheduler = SimpleNamespace(
        async_scheduling=True,
        max_num_batched_tokens=asked["batched_tokens"],
        disable_hybrid_kv_cache_manager=not asked["hybrid_manager"],
    )
    config: Any = SimpleNamespace(
        scheduler_config=scheduler,
        parallel_config=parallel,
        model_config=SimpleNamespace(max_model_len=asked["context"]),
        attention_config=SimpleNamespace(hisparse_config=None),
        speculative_config=None,
        use_v2_model_runner=True,
        cache_config=SimpleNamespace(
            num_gpu_blocks_override=None,
            prefix_cache_retention_interval=None,
            mamba_cache_mode=asked["mode"],
            get_resolved_kv_cache_layout=lambda: KVCacheLayout.LBNHC,
        ),
    )
    config.max_concurrent_batches = VllmConfig.max_concurrent_batches.fget(config)
    config.max_in_flight_tokens = VllmConfig.max_in_flight_tokens.fget(config)
    layers = {f"layers.{place}": spec(layer) for place, layer in enumerate(asked["layers"])}
    groups = get_kv_cache_groups(config, layers)
    made = get_kv_cache_config_from_groups(config, groups, asked["size"])
    return {
        "groups": len(groups),
        "largest_group": max(len(group.layer_names) for group in groups),
        "blocks": made.num_blocks,
        "tokens": get_kv_cache_capacity(config, made)[0],
    }


if __name__ == "__main__":
    json.dump([counted(one) for one in json.load(sys.stdin)], sys.stdout)
