"""Blocks, groups and tokens as the calculator has them, against vLLM's own functions for the same layers."""

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine_host.fit.kv import heads_on_gpu, state_bytes
from engine_host.fit.pool import Pool, vllm_pool
from engine_host.fit.shapes.model import RECURRENT, Layer, ModelShape, read_shape
from tests.vllm_environment import vllm_python

HERE = Path(__file__).parent
SIZE = 40 * 2**30
KINDS = {Layer.FULL: "full", Layer.SLIDING: "sliding", Layer.CHUNKED: "chunked"}
DENSE: dict[str, Any] = {
    "num_hidden_layers": 36,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151_936,
    "intermediate_size": 12_288,
}
GEMMA_3 = {
    **DENSE,
    "model_type": "gemma3_text",
    "num_hidden_layers": 62,
    "num_key_value_heads": 16,
    "sliding_window": 1024,
}
GPT_OSS = {**DENSE, "model_type": "gpt_oss", "num_hidden_layers": 24, "head_dim": 64, "sliding_window": 128}
LLAMA_4 = {**DENSE, "model_type": "llama4_text", "num_hidden_layers": 48, "attention_chunk_size": 8192}
GEMMA_4 = {
    **DENSE,
    "model_type": "gemma4_text",
    "num_hidden_layers": 60,
    "num_key_value_heads": 16,
    "num_global_key_value_heads": 4,
    "head_dim": 256,
    "global_head_dim": 512,
    "attention_k_eq_v": True,
    "sliding_window": 1024,
}
SHARED = {**GEMMA_4, "num_hidden_layers": 35, "num_kv_shared_layers": 20, "attention_k_eq_v": False}
HYBRID = {
    **DENSE,
    "num_hidden_layers": 64,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "full_attention_interval": 4,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 48,
}
GRANITE = {
    **DENSE,
    "model_type": "granitemoehybrid",
    "num_hidden_layers": 40,
    "layer_types": (["mamba"] * 9 + ["attention"]) * 4,
    "mamba_n_heads": 128,
    "mamba_d_head": 64,
    "mamba_d_state": 128,
    "mamba_n_groups": 1,
    "mamba_d_conv": 4,
}


@dataclass(frozen=True)
class Case:
    """One start."""

    config: dict[str, Any]
    context: int = 65_536
    batched_tokens: int = 8192
    tp: int = 1
    draft_tokens: int = 0
    prefix_caching: bool = False
    hybrid_manager: bool | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def shape(self) -> ModelShape:
        """The model."""
        return read_shape({**self.config, **self.extra})

    @property
    def pool(self) -> Pool:
        """What the calculator says."""
        return vllm_pool(
            self.shape,
            "auto",
            tp=self.tp,
            draft_tokens=self.draft_tokens,
            prefix_caching=self.prefix_caching,
            batched_tokens=self.batched_tokens,
            hybrid_manager=self.hybrid_manager,
        )

    def asked(self) -> dict[str, Any]:
        """The same for vLLM; of states, block and page are the platform's, which are told to it."""
        shape, pool = self.shape, self.pool
        attention = 16 if not RECURRENT & {*shape.layers} else pool.block_tokens
        layers: list[dict[str, Any]] = []
        for kind in shape.layers[: len(shape.layers) - shape.shared_kv]:
            if kind in RECURRENT:
                layers.append(
                    {
                        "kind": "mamba",
                        "block_size": pool.block_tokens,
                        "state_bytes": state_bytes(shape, self.tp, self.draft_tokens),
                        "page": pool.page_bytes,
                        "mode": "align" if self.prefix_caching else "none",
                        "drafts": self.draft_tokens,
                    }
                )
                continue
            heads = shape.full if kind is Layer.FULL else shape
            layer = {
                "kind": KINDS[kind],
                "block_size": attention,
                "num_kv_heads": heads_on_gpu(heads, self.tp),
                "head_size": heads.head_dim,
            }
            reach = {Layer.SLIDING: "sliding_window", Layer.CHUNKED: "attention_chunk_size"}
            if kind in reach:
                layer[reach[kind]] = shape.window
            layers.append(layer)
        return {
            "layers": layers,
            "context": self.context,
            "batched_tokens": self.batched_tokens,
            "hybrid_manager": self.hybrid_manager is not False,
            "mode": "align" if self.prefix_caching else "none",
            "size": SIZE,
        }


CASES = {
    "dense": Case(DENSE),
    "dense, tensor parallel 16": Case(DENSE, tp=16),
    "Gemma 3": Case(GEMMA_3),
    "Gemma 3, short": Case(GEMMA_3, context=4096, batched_tokens=2048),
    "Gemma 3 without the hybrid manager": Case(GEMMA_3, hybrid_manager=False),
    "gpt-oss": Case(GPT_OSS),
    "gpt-oss, 12 windows and 13 full": Case(
        GPT_OSS,
        extra={
            "num_hidden_layers": 25,
            "layer_types": ["sliding_attention", "full_attention"] * 12 + ["full_attention"],
        },
    ),
    "windows alone": Case({**DENSE, "sliding_window": 4096}),
    "Llama 4": Case(LLAMA_4, context=131_072),
    "Llama 4 without the hybrid manager": Case(LLAMA_4, context=131_072, hybrid_manager=False),
    "Gemma 4": Case(GEMMA_4),
    "Gemma 4, tensor parallel 2": Case(GEMMA_4, tp=2),
    "Gemma 4 without the hybrid manager": Case(GEMMA_4, hybrid_manager=False),
    "Gemma 4 with shared KV": Case(SHARED),
    "gated delta": Case(HYBRID),
    "gated delta, prefix caching": Case(HYBRID, prefix_caching=True),
    "gated delta, drafts": Case(HYBRID, draft_tokens=3),
    "Mamba 2": Case(GRANITE),
    "Mamba 2, prefix caching": Case(GRANITE, prefix_caching=True),
    "three kinds": Case(
        {**HYBRID, "sliding_window": 2048},
        extra={
            "num_hidden_layers": 24,
            "layer_types": ["linear_attention", "sliding_attention", "full_attention"] * 8,
        },
    ),
}


@pytest.fixture(scope="module")
def counted() -> dict[str, dict[str, Any]]:
    """What vLLM says of every case, in one run of its Python."""
    ended = subprocess.run(
        [str(vllm_python()), str(HERE / "vllm_groups.py")],
        input=json.dumps([case.asked() for case in CASES.values()]),
        env={**os.environ, "VLLM_LOGGING_LEVEL": "ERROR"},
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return dict(zip(CASES, json.loads(ended.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_as_vllm_counts(counted: dict[str, dict[str, Any]], name: str) -> None:
    case, said = CASES[name], counted[name]
    pool = case.pool
    found = {
        "groups": sum(group.count for group in pool.groups),
        "largest_group": pool.layers,
        "blocks": pool.blocks(SIZE),
        "tokens": pool.tokens(SIZE, case.context),
    }
    assert found == said
