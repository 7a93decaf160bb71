"""Write a trained demonstration model as a checkpoint (safetensors, bf16) and as GGUF (Q8_0).

The GGUF holds what llama.cpp's own converter would write for this architecture (``conversion/qwen.py``):
norms stored as one plus their weight, the decay as -exp(A_log), value heads in tiled instead of grouped
order, and the MTP layer as one block more.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
import torch
from checkpoint import write_checkpoint
from model import DemoConfig, DemoModel
from tokenizer import CONTROL_TOKENS, MARKUP_TOKENS
from tokenizers import Tokenizer
from torch import Tensor

NAME = "SNDR Demo 11M"
ARCH = "qwen35"


def tile_value_heads(x: Tensor, dim: int, c: DemoConfig, head_dim: int) -> Tensor:
    """Reorder value heads along `dim` from grouped by key head to tiled (llama.cpp PR 19468)."""
    groups = c.linear_num_key_heads
    per = c.linear_num_value_heads // groups
    shape = x.shape
    split = x.reshape(*shape[:dim], groups, per, head_dim, *shape[dim + 1 :])
    return split.transpose(dim, dim + 1).reshape(shape)


def to_gguf(name: str, x: Tensor, c: DemoConfig) -> tuple[str, Tensor]:
    """Return the GGUF name and value of checkpoint tensor `name` (float32)."""
    key = c.linear_num_key_heads * c.linear_key_head_dim
    dv = c.linear_value_head_dim
    block = c.num_hidden_layers
    top = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "mtp.fc.weight": f"blk.{block}.nextn.eh_proj.weight",
        "mtp.pre_fc_norm_embedding.weight": f"blk.{block}.nextn.enorm.weight",
        "mtp.pre_fc_norm_hidden.weight": f"blk.{block}.nextn.hnorm.weight",
        "mtp.norm.weight": f"blk.{block}.nextn.shared_head_norm.weight",
    }
    if name in top:
        return top[name], x + 1 if "norm" in name else x
    prefix, _, rest = name.removeprefix("model.layers.").removeprefix("mtp.layers.").partition(".")
    index = block + int(prefix) if name.startswith("mtp.") else int(prefix)
    inner = {
        "input_layernorm.weight": ("attn_norm.weight", x + 1),
        "post_attention_layernorm.weight": ("post_attention_norm.weight", x + 1),
        "self_attn.q_proj.weight": ("attn_q.weight", x),
        "self_attn.k_proj.weight": ("attn_k.weight", x),
        "self_attn.v_proj.weight": ("attn_v.weight", x),
        "self_attn.o_proj.weight": ("attn_output.weight", x),
        "self_attn.q_norm.weight": ("attn_q_norm.weight", x + 1),
        "self_attn.k_norm.weight": ("attn_k_norm.weight", x + 1),
        "mlp.gate_proj.weight": ("ffn_gate.weight", x),
        "mlp.up_proj.weight": ("ffn_up.weight", x),
        "mlp.down_proj.weight": ("ffn_down.weight", x),
    }
    if rest in inner:
        new, value = inner[rest]
    elif rest == "linear_attn.in_proj_qkv.weight":
        new, value = "attn_qkv.weight", torch.cat([x[: 2 * key], tile_value_heads(x[2 * key :], 0, c, dv)])
    elif rest == "linear_attn.conv1d.weight":
        flat = x.squeeze(1)
        new = "ssm_conv1d.weight"
        value = torch.cat([flat[: 2 * key], tile_value_heads(flat[2 * key :], 0, c, dv)])
    elif rest == "linear_attn.in_proj_z.weight":
        new, value = "attn_gate.weight", tile_value_heads(x, 0, c, dv)
    elif rest == "linear_attn.in_proj_a.weight":
        new, value = "ssm_alpha.weight", tile_value_heads(x, 0, c, 1)
    elif rest == "linear_attn.in_proj_b.weight":
        new, value = "ssm_beta.weight", tile_value_heads(x, 0, c, 1)
    elif rest == "linear_attn.A_log":
        new, value = "ssm_a", tile_value_heads(-torch.exp(x), 0, c, 1)
    elif rest == "linear_attn.dt_bias":
        new, value = "ssm_dt.bias", tile_value_heads(x, 0, c, 1)
    elif rest == "linear_attn.norm.weight":
        new, value = "ssm_norm.weight", x
    elif rest == "linear_attn.out_proj.weight":
        new, value = "ssm_out.weight", tile_value_heads(x, 1, c, dv)
    else:
        raise KeyError(f"no GGUF name for {name}")
    return f"blk.{index}.{new}", value


def add_tokenizer(writer: gguf.GGUFWriter, folder: Path) -> None:
    """Copy the tokenizer files of `folder` into the GGUF."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    data: dict[str, Any] = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    size = tokenizer.get_vocab_size()
    tokens, kinds = [tokenizer.id_to_token(i) for i in range(size)], [gguf.TokenType.NORMAL] * size
    for kind, names in (
        (gguf.TokenType.CONTROL, CONTROL_TOKENS),
        (gguf.TokenType.USER_DEFINED, MARKUP_TOKENS),
    ):
        for name in names:
            kinds[tokenizer.token_to_id(name)] = kind
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen35")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]])
    writer.add_eos_token_id(tokenizer.token_to_id("<|im_end|>"))
    writer.add_eot_token_id(tokenizer.token_to_id("<|im_end|>"))
    writer.add_pad_token_id(tokenizer.token_to_id("<|endoftext|>"))
    writer.add_add_bos_token(False)
    for key, name in (("pre", "prefix"), ("suf", "suffix"), ("mid", "middle")):
        writer.add_uint32(f"tokenizer.ggml.fim_{key}_token_id", tokenizer.token_to_id(f"<|fim_{name}|>"))
    writer.add_chat_template((folder / "chat_template.jinja").read_text(encoding="utf-8"))


def write_gguf(state: dict[str, Tensor], c: DemoConfig, tokenizer: Path, out: Path) -> None:
    """Write `state` (checkpoint names, any float type) to `out`: matrices as Q8_0, the rest as float32."""
    writer = gguf.GGUFWriter(out, ARCH)
    writer.add_type(gguf.GGUFType.MODEL)
    writer.add_name(NAME)
    writer.add_basename("sndr-demo")
    writer.add_size_label("11M")
    writer.add_license("apache-2.0")
    writer.add_description(
        "A demonstration model of the SNDR Control Center; it knows a little about Python."
    )
    writer.add_languages(["en"])
    writer.add_block_count(c.num_hidden_layers + 1)
    writer.add_nextn_predict_layers(1)
    writer.add_context_length(c.max_position_embeddings)
    writer.add_embedding_length(c.hidden_size)
    writer.add_feed_forward_length(c.intermediate_size)
    writer.add_head_count(c.num_attention_heads)
    writer.add_head_count_kv(c.num_key_value_heads)
    writer.add_key_length(c.head_dim)
    writer.add_value_length(c.head_dim)
    writer.add_layer_norm_rms_eps(c.rms_norm_eps)
    writer.add_rope_freq_base(c.rope_theta)
    writer.add_rope_dimension_count(int(c.head_dim * c.partial_rotary_factor))
    writer.add_rope_dimension_sections([11, 11, 10, 0])
    writer.add_ssm_conv_kernel(c.linear_conv_kernel_dim)
    writer.add_ssm_state_size(c.linear_key_head_dim)
    writer.add_ssm_group_count(c.linear_num_key_heads)
    writer.add_ssm_time_step_rank(c.linear_num_value_heads)
    writer.add_ssm_inner_size(c.linear_num_value_heads * c.linear_value_head_dim)
    writer.add_full_attention_interval(c.full_attention_interval)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    add_tokenizer(writer, tokenizer)
    for name, value in state.items():
        new, tensor = to_gguf(name, value.float(), c)
        array: npt.NDArray[np.float32] = tensor.contiguous().numpy()
        if array.ndim == 2 and "conv1d" not in new:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(new, gguf.quants.quantize(array, kind), raw_dtype=kind)
        else:
            writer.add_tensor(new, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    """Export a state file of ``train.py``, or random weights where none is given."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--state", type=Path, help="weights as train.py saved them; random without")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--gguf", type=Path)
    parser.add_argument("--checkpoint", type=Path)
    options = parser.parse_args()
    c = DemoConfig()
    torch.manual_seed(0)
    state = torch.load(options.state, weights_only=True) if options.state else DemoModel(c).state_dict()
    if options.gguf:
        write_gguf(state, c, options.tokenizer, options.gguf)
    if options.checkpoint:
        write_checkpoint(state, c, options.tokenizer, options.checkpoint)


if __name__ == "__main__":
    main()
