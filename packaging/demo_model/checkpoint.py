"""Write a trained model as a checkpoint: safetensors in bf16, with its configuration and tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from model import DemoConfig
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor


def write_checkpoint(state: dict[str, Tensor], c: DemoConfig, tokenizer: Path, out: Path) -> None:
    """Write ``config.json``, ``generation_config.json`` and ``model.safetensors`` (bf16) into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    table = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    end, pad = table.token_to_id("<|im_end|>"), table.token_to_id("<|endoftext|>")
    config = c.to_hf(end, pad)
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    generation = {"eos_token_id": [end, pad], "pad_token_id": pad, "do_sample": False}
    (out / "generation_config.json").write_text(json.dumps(generation, indent=1) + "\n", encoding="utf-8")
    for file in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        if (tokenizer / file).resolve() != (out / file).resolve():
            (out / file).write_bytes((tokenizer / file).read_bytes())
    tensors = {k: v.to(torch.bfloat16).contiguous() for k, v in state.items()}
    save_file(tensors, str(out / "model.safetensors"), metadata={"format": "pt"})
