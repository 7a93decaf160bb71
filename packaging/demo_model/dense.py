"""A dense model of the same data, in Qwen3's architecture, to measure what vLLM's boundary layers are worth.

vLLM keeps the first two and the last two layers of a dense model in 16 bits with a TurboQuant cache; the
demonstration model is a hybrid, of which it spares none. `train.py --dense` trains this one, and this script
writes what was trained for vLLM; `sndr bench quality FOLDER --engine vllm --kv turboquant_k8v4
--kv turboquant_k8v4+all-layers` measures. It does not come with the program. Source: transformers'
``modeling_qwen3.py``.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name that PyTorch code uses
from checkpoint import write_checkpoint
from model import MLP, DemoConfig, draw_weights, rotate, tables
from torch import Tensor, nn


@dataclass(frozen=True)
class DenseConfig(DemoConfig):
    """Sizes: 12 layers of full attention with heads of 128, 42 M parameters."""

    hidden_size: int = 512
    intermediate_size: int = 1536
    num_hidden_layers: int = 12
    head_dim: int = 128
    full_attention_interval: int = 1
    partial_rotary_factor: float = 1.0

    def to_hf(self, eos_token_id: int, pad_token_id: int) -> dict[str, Any]:
        """Return the contents of ``config.json`` for transformers and vLLM."""
        return {
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "num_key_value_heads": self.num_key_value_heads,
            "head_dim": self.head_dim,
            "rms_norm_eps": self.rms_norm_eps,
            "rope_theta": self.rope_theta,
            "max_position_embeddings": self.max_position_embeddings,
            "attention_bias": False,
            "hidden_act": "silu",
            "tie_word_embeddings": True,
            "dtype": "bfloat16",
            "bos_token_id": None,
            "eos_token_id": eos_token_id,
            "pad_token_id": pad_token_id,
        }


class DenseAttention(nn.Module):
    """Grouped-query attention with normed queries and keys and rotary positions."""

    def __init__(self, c: DenseConfig) -> None:
        super().__init__()
        self.c = c
        q, kv = c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim
        self.q_proj = nn.Linear(c.hidden_size, q, bias=False)
        self.k_proj = nn.Linear(c.hidden_size, kv, bias=False)
        self.v_proj = nn.Linear(c.hidden_size, kv, bias=False)
        self.o_proj = nn.Linear(q, c.hidden_size, bias=False)
        self.q_norm = nn.RMSNorm(c.head_dim, c.rms_norm_eps)
        self.k_norm = nn.RMSNorm(c.head_dim, c.rms_norm_eps)

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        """Attend over `x` (batch, time, hidden); `mask` (batch, 1, time, time) is true where allowed."""
        c, (b, t, _) = self.c, x.shape
        q = rotate(self.q_norm(self.q_proj(x).view(b, t, -1, c.head_dim)).transpose(1, 2), rotary)
        k = rotate(self.k_norm(self.k_proj(x).view(b, t, -1, c.head_dim)).transpose(1, 2), rotary)
        v = self.v_proj(x).view(b, t, -1, c.head_dim).transpose(1, 2)
        repeat = c.num_attention_heads // c.num_key_value_heads
        k, v = k.repeat_interleave(repeat, dim=1), v.repeat_interleave(repeat, dim=1)
        out = F.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v, attn_mask=mask)
        return self.o_proj(out.transpose(1, 2).reshape(b, t, -1))  # type: ignore[no-any-return]


class DenseLayer(nn.Module):
    """One pre-norm decoder layer."""

    def __init__(self, c: DenseConfig) -> None:
        super().__init__()
        self.self_attn = DenseAttention(c)
        self.mlp = MLP(c)
        self.input_layernorm = nn.RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(c.hidden_size, c.rms_norm_eps)

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        """Return the layer's output for `x` (batch, time, hidden)."""
        x = x + self.self_attn(self.input_layernorm(x), rotary, mask)
        return x + self.mlp(self.post_attention_layernorm(x))  # type: ignore[no-any-return]


class DenseTrunk(nn.Module):
    """Embedding, decoder layers and last norm (the checkpoint's ``model.``)."""

    def __init__(self, c: DenseConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        self.layers = nn.ModuleList(DenseLayer(c) for _ in range(c.num_hidden_layers))
        self.norm = nn.RMSNorm(c.hidden_size, c.rms_norm_eps)


class DenseModel(nn.Module):
    """The whole model, called as `DemoModel` is; it drafts nothing."""

    def __init__(self, c: DenseConfig) -> None:
        super().__init__()
        self.c = c
        self.model = DenseTrunk(c)
        draw_weights(self, c)

    def forward(self, ids: Tensor, age: Tensor, drafts: int = 0, rows: int | None = None) -> list[Tensor]:
        """Return the normed states (batch, time, hidden), in a list of one."""
        del rows
        if drafts:
            raise ValueError("the dense model has no drafting layer")
        rotary, mask = tables(self.c, age)
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x = layer(x, rotary, mask)
        return [self.model.norm(x)]

    def logits(self, state: Tensor) -> Tensor:
        """Return the scores over the vocabulary, (..., vocab)."""
        return F.linear(state, self.model.embed_tokens.weight)


def main() -> None:
    """Write weights as train.py saved them as a checkpoint."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    asked = parser.parse_args()
    weights = torch.load(asked.weights, weights_only=True)
    write_checkpoint(weights, DenseConfig(), asked.tokenizer, asked.checkpoint)


if __name__ == "__main__":
    main()
