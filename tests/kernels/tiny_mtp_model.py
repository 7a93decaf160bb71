"""A tiny MiMo with an MTP layer, random weights in fp32: `python tiny_mtp_model.py FOLDER`; it needs torch.

Its next token follows mostly from the last one, and the MTP layer knows that: some drafts are accepted,
others are not.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

HIDDEN, LAYERS, VOCABULARY, HEADS, KV_HEADS, HEAD_SIZE = 256, 6, 64, 4, 2, 64
CONFIG = {
    "architectures": ["MiMoForCausalLM"],
    "model_type": "qwen2",
    "num_nextn_predict_layers": 1,
    "hidden_size": HIDDEN,
    "intermediate_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD_SIZE,
    "max_position_embeddings": 4096,
    "vocab_size": VOCABULARY,
    "rms_norm_eps": 1e-5,
    "rope_theta": 640000,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "hidden_act": "silu",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "attention_bias": True,
    "use_sliding_window": False,
}


def weights() -> dict[str, torch.Tensor]:
    """Every tensor of the checkpoint."""
    draw = torch.Generator().manual_seed(0)
    found = {}

    def matrix(name: str, rows: int, columns: int, size: float = 1.0) -> None:
        found[f"{name}.weight"] = torch.randn(rows, columns, generator=draw) * size * columns**-0.5

    def norms(prefix: str, *names: str) -> None:
        found.update({f"{prefix}{name}.weight": torch.ones(HIDDEN) for name in names})

    def block(prefix: str) -> None:
        for name, heads, size in (("q", HEADS, 2.0), ("k", KV_HEADS, 2.0), ("v", KV_HEADS, 1.0)):
            matrix(f"{prefix}self_attn.{name}_proj", heads * HEAD_SIZE, HIDDEN, size)
            bias = torch.randn(heads * HEAD_SIZE, generator=draw) * 0.1
            found[f"{prefix}self_attn.{name}_proj.bias"] = bias
        matrix(f"{prefix}self_attn.o_proj", HIDDEN, HEADS * HEAD_SIZE, 0.5)
        matrix(f"{prefix}mlp.gate_proj", HIDDEN, HIDDEN)
        matrix(f"{prefix}mlp.up_proj", HIDDEN, HIDDEN)
        matrix(f"{prefix}mlp.down_proj", HIDDEN, HIDDEN, 0.5)
        norms(prefix, "input_layernorm", "post_attention_layernorm")

    found["model.embed_tokens.weight"] = torch.randn(VOCABULARY, HIDDEN, generator=draw)
    matrix("lm_head", VOCABULARY, HIDDEN)
    norms("model.", "norm")
    for layer in range(LAYERS):
        block(f"model.layers.{layer}.")
    block("model.mtp_layers.0.")
    norms("model.mtp_layers.0.", "token_layernorm", "hidden_layernorm", "final_layernorm")
    # The last token alone, not the hidden state before it.
    token = torch.cat([torch.zeros(HIDDEN, HIDDEN), torch.eye(HIDDEN)], 1)
    found["model.mtp_layers.0.input_proj.weight"] = token
    return found


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    save_file(weights(), folder / "model.safetensors", metadata={"format": "pt"})
