"""A tiny MiMo with an MTP layer of random weights: `python tiny_mtp_model.py FOLDER [HEAD_SIZE]`, by torch.

Its next token follows mostly from the last one, and the MTP layer knows that: some drafts are accepted,
others are not. Without a head size it is in fp32 and small enough for an interpreter, else in bf16.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model; the MLP is as wide as the hidden state."""

    layers: int = 6
    vocabulary: int = 64
    heads: int = 4
    kv_heads: int = 2
    head_size: int = 64
    dtype: torch.dtype = torch.float32

    @property
    def hidden(self) -> int:
        """The hidden size: vLLM's Qwen2 takes the size of a head from it, whatever config.json says."""
        return self.heads * self.head_size


FOR_GPUS = {
    64: Sizes(8, 512, 8, 2, 64, torch.bfloat16),
    128: Sizes(8, 512, 8, 2, 128, torch.bfloat16),
    256: Sizes(8, 512, 8, 1, 256, torch.bfloat16),
}


def config(sizes: Sizes) -> dict[str, Any]:
    """The model's config.json."""
    return {
        "architectures": ["MiMoForCausalLM"],
        "model_type": "qwen2",
        "num_nextn_predict_layers": 1,
        "hidden_size": sizes.hidden,
        "intermediate_size": sizes.hidden,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "head_dim": sizes.head_size,
        "max_position_embeddings": 8192,
        "vocab_size": sizes.vocabulary,
        "rms_norm_eps": 1e-5,
        "rope_theta": 640000,
        "tie_word_embeddings": False,
        "torch_dtype": str(sizes.dtype).removeprefix("torch."),
        "hidden_act": "silu",
        "bos_token_id": 1,
        "eos_token_id": 2,
        "attention_bias": True,
        "use_sliding_window": False,
    }


def weights(sizes: Sizes) -> dict[str, torch.Tensor]:
    """Every tensor of the checkpoint."""
    draw = torch.Generator().manual_seed(0)
    hidden = sizes.hidden
    found = {}

    def matrix(name: str, rows: int, columns: int, size: float = 1.0) -> None:
        found[f"{name}.weight"] = torch.randn(rows, columns, generator=draw) * size * columns**-0.5

    def norms(prefix: str, *names: str) -> None:
        found.update({f"{prefix}{name}.weight": torch.ones(hidden) for name in names})

    def block(prefix: str) -> None:
        for name, heads, size in (
            ("q", sizes.heads, 2.0),
            ("k", sizes.kv_heads, 2.0),
            ("v", sizes.kv_heads, 1.0),
        ):
            matrix(f"{prefix}self_attn.{name}_proj", heads * sizes.head_size, hidden, size)
            bias = torch.randn(heads * sizes.head_size, generator=draw) * 0.1
            found[f"{prefix}self_attn.{name}_proj.bias"] = bias
        matrix(f"{prefix}self_attn.o_proj", hidden, sizes.heads * sizes.head_size, 0.5)
        matrix(f"{prefix}mlp.gate_proj", hidden, hidden)
        matrix(f"{prefix}mlp.up_proj", hidden, hidden)
        matrix(f"{prefix}mlp.down_proj", hidden, hidden, 0.5)
        norms(prefix, "input_layernorm", "post_attention_layernorm")

    found["model.embed_tokens.weight"] = torch.randn(sizes.vocabulary, hidden, generator=draw)
    matrix("lm_head", sizes.vocabulary, hidden)
    norms("model.", "norm")
    for layer in range(sizes.layers):
        block(f"model.layers.{layer}.")
    block("model.mtp_layers.0.")
    norms("model.mtp_layers.0.", "token_layernorm", "hidden_layernorm", "final_layernorm")
    # The last token alone, not the hidden state before it.
    token = torch.cat([torch.zeros(hidden, hidden), torch.eye(hidden)], 1)
    found["model.mtp_layers.0.input_proj.weight"] = token
    return {name: tensor.to(sizes.dtype) for name, tensor in found.items()}


def write(folder: Path, sizes: Sizes) -> None:
    """The model as a folder that vLLM loads."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(sizes)), encoding="utf-8")
    save_file(weights(sizes), folder / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    write(Path(sys.argv[1]), FOR_GPUS[int(sys.argv[2])] if sys.argv[2:] else Sizes())
