"""Rebuild the demonstration model's safetensors checkpoint (bf16) from its GGUF, with NumPy alone.

The program ships the weights once, as 8-bit GGUF; engines that load Hugging Face checkpoints (vLLM,
transformers) get theirs from here.  Only what ``export.py`` writes is understood: F32 and Q8_0 tensors of the
``qwen35`` architecture with tied embeddings.  Sources: ggml's GGUF specification and ``block_q8_0``, the
safetensors format description.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

SIDE_FILES: Final = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
)
"""Files that lie beside the GGUF and belong to the checkpoint as they are."""

F32: Final = 0
Q8_0: Final = 8
Q8_0_BLOCK: Final = np.dtype([("scale", "<f2"), ("quants", "i1", (32,))])
"""ggml's ``block_q8_0``: one half-precision scale for 32 signed bytes."""

SCALARS: Final[dict[int, str]] = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
STRING: Final = 8
ARRAY: Final = 9


class GgufError(ValueError):
    """The file is not a GGUF that this module understands; the message says why."""


class Reader:
    """A position in the header of a GGUF file."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at = data, 0

    def scalar(self, code: str) -> Any:
        """Read one little-endian value by its ``struct`` code."""
        size = struct.calcsize(code)
        if self.at + size > len(self.data):
            raise GgufError("the file ends inside its header")
        value = struct.unpack_from(code, self.data, self.at)[0]
        self.at += size
        return value

    def string(self) -> str:
        """Read one length-prefixed UTF-8 string."""
        size = self.scalar("<Q")
        if self.at + size > len(self.data):
            raise GgufError("the file ends inside a string")
        raw = self.data[self.at : self.at + size]
        self.at += size
        return raw.decode("utf-8", errors="replace")

    def value(self, kind: int) -> Any:
        """Read one metadata value of a GGUF type."""
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            inner, count = self.scalar("<I"), self.scalar("<Q")
            return [self.value(inner) for _ in range(count)]
        if kind not in SCALARS:
            raise GgufError(f"unknown metadata type {kind}")
        return self.scalar(SCALARS[kind])


def read_gguf(file: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the metadata and the tensors (float32, row-major) of a GGUF file of version 2 or 3.

    Raises GgufError for another format, a tensor type besides F32 and Q8_0, or a file cut short.
    """
    with file.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
        reader = Reader(data)
        if reader.scalar("<I") != 0x46554747 or reader.scalar("<I") not in (2, 3):
            raise GgufError(f"{file.name} is not a GGUF file of version 2 or 3")
        tensors, entries = reader.scalar("<Q"), reader.scalar("<Q")
        metadata = {reader.string(): reader.value(reader.scalar("<I")) for _ in range(entries)}
        infos: list[tuple[str, tuple[int, ...], int, int]] = []
        for _ in range(tensors):
            name = reader.string()
            shape = tuple(reader.scalar("<Q") for _ in range(reader.scalar("<I")))[::-1]
            infos.append((name, shape, reader.scalar("<I"), reader.scalar("<Q")))
        alignment = int(metadata.get("general.alignment", 32))
        start = -(-reader.at // alignment) * alignment
        return metadata, {n: tensor(data, shape, kind, start + at) for n, shape, kind, at in infos}


def tensor(data: mmap.mmap, shape: tuple[int, ...], kind: int, at: int) -> Array:
    """Return one tensor as float32, copied out of the file."""
    count = int(np.prod(shape))
    size = {F32: 4 * count, Q8_0: count // 32 * 34}.get(kind)
    if size is None:
        raise GgufError(f"tensor type {kind} is neither F32 nor Q8_0")
    if at + size > len(data):
        raise GgufError("the file ends inside a tensor")
    raw = data[at : at + size]
    if kind == F32:
        return np.frombuffer(raw, dtype="<f4").reshape(shape).astype(np.float32)
    blocks = np.frombuffer(raw, dtype=Q8_0_BLOCK)
    return (blocks["scale"].astype(np.float32)[:, None] * blocks["quants"]).reshape(shape).astype(np.float32)


def group_value_heads(x: Array, axis: int, key_heads: int, value_heads: int) -> Array:
    """Undo llama.cpp's tiled order of the value heads along `axis` (its PR 19468)."""
    per = value_heads // key_heads
    head = x.shape[axis] // value_heads
    split = x.reshape(*x.shape[:axis], per, key_heads, head, *x.shape[axis + 1 :])
    return np.ascontiguousarray(np.swapaxes(split, axis, axis + 1)).reshape(x.shape)


def to_checkpoint(metadata: dict[str, Any], tensors: dict[str, Array]) -> Iterator[tuple[str, Array]]:
    """Yield the checkpoint's names and values (float32) for the tensors of a GGUF.

    Raises GgufError for another architecture or a tensor that the architecture does not have.
    """
    arch = metadata.get("general.architecture")
    if arch != "qwen35":
        raise GgufError(f"the architecture is {arch!r}, not 'qwen35'")
    trunk = int(metadata["qwen35.block_count"]) - int(metadata["qwen35.nextn_predict_layers"])
    k_heads, v_heads = int(metadata["qwen35.ssm.group_count"]), int(metadata["qwen35.ssm.time_step_rank"])
    key_rows = 2 * k_heads * int(metadata["qwen35.ssm.state_size"])

    def grouped(axis: int) -> Callable[[Array], Array]:
        return lambda x: group_value_heads(x, axis, k_heads, v_heads)

    def mixed(x: Array) -> Array:
        return np.concatenate([x[:key_rows], group_value_heads(x[key_rows:], 0, k_heads, v_heads)])

    def same(x: Array) -> Array:
        return x

    def less_one(x: Array) -> Array:
        return x - 1

    inner: dict[str, tuple[str, Callable[[Array], Array]]] = {
        "attn_norm.weight": ("input_layernorm.weight", less_one),
        "post_attention_norm.weight": ("post_attention_layernorm.weight", less_one),
        "attn_q.weight": ("self_attn.q_proj.weight", same),
        "attn_k.weight": ("self_attn.k_proj.weight", same),
        "attn_v.weight": ("self_attn.v_proj.weight", same),
        "attn_output.weight": ("self_attn.o_proj.weight", same),
        "attn_q_norm.weight": ("self_attn.q_norm.weight", less_one),
        "attn_k_norm.weight": ("self_attn.k_norm.weight", less_one),
        "ffn_gate.weight": ("mlp.gate_proj.weight", same),
        "ffn_up.weight": ("mlp.up_proj.weight", same),
        "ffn_down.weight": ("mlp.down_proj.weight", same),
        "attn_qkv.weight": ("linear_attn.in_proj_qkv.weight", mixed),
        "ssm_conv1d.weight": ("linear_attn.conv1d.weight", lambda x: mixed(x)[:, None, :]),
        "attn_gate.weight": ("linear_attn.in_proj_z.weight", grouped(0)),
        "ssm_alpha.weight": ("linear_attn.in_proj_a.weight", grouped(0)),
        "ssm_beta.weight": ("linear_attn.in_proj_b.weight", grouped(0)),
        "ssm_a": ("linear_attn.A_log", lambda x: group_value_heads(np.log(-x), 0, k_heads, v_heads)),
        "ssm_dt.bias": ("linear_attn.dt_bias", grouped(0)),
        "ssm_norm.weight": ("linear_attn.norm.weight", same),
        "ssm_out.weight": ("linear_attn.out_proj.weight", grouped(1)),
    }
    outer: dict[str, tuple[str, Callable[[Array], Array]]] = {
        "token_embd.weight": ("model.embed_tokens.weight", same),
        "output_norm.weight": ("model.norm.weight", less_one),
        f"blk.{trunk}.nextn.eh_proj.weight": ("mtp.fc.weight", same),
        f"blk.{trunk}.nextn.enorm.weight": ("mtp.pre_fc_norm_embedding.weight", less_one),
        f"blk.{trunk}.nextn.hnorm.weight": ("mtp.pre_fc_norm_hidden.weight", less_one),
        f"blk.{trunk}.nextn.shared_head_norm.weight": ("mtp.norm.weight", less_one),
    }
    for name, value in tensors.items():
        if name in outer:
            new, change = outer[name]
        else:
            _, index, rest = name.split(".", 2)
            if rest not in inner:
                raise GgufError(f"unexpected tensor {name}")
            new, change = inner[rest]
            block = int(index)
            new = f"mtp.layers.{block - trunk}.{new}" if block >= trunk else f"model.layers.{block}.{new}"
        yield new, change(value)


def to_bf16(x: Array) -> bytes:
    """Return float32 values as bfloat16 bytes, rounded to the nearest even."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()


def write_safetensors(values: dict[str, Array], file: Path) -> None:
    """Write tensors as a bf16 safetensors file, all at once: a half-written file never has its name."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name in sorted(values):
        size = 2 * values[name].size
        header[name] = {"dtype": "BF16", "shape": list(values[name].shape), "data_offsets": [at, at + size]}
        at += size
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    partial = file.with_name(file.name + ".part")
    with partial.open("wb") as handle:
        handle.write(struct.pack("<Q", len(head)) + head)
        for name in sorted(values):
            handle.write(to_bf16(values[name]))
        handle.flush()
        os.fsync(handle.fileno())
    partial.replace(file)


def rebuild(gguf: Path, out: Path) -> Path:
    """Write the checkpoint folder `out` from `gguf` and the files beside it; returns the folder.

    Raises GgufError when the GGUF is not the demonstration model, and OSError as writing does.
    """
    metadata, tensors = read_gguf(gguf)
    values = dict(to_checkpoint(metadata, tensors))
    out.mkdir(parents=True, exist_ok=True)
    for name in SIDE_FILES:
        if (gguf.parent / name).resolve() != (out / name).resolve():
            shutil.copyfile(gguf.parent / name, out / name)
    write_safetensors(values, out / "model.safetensors")
    return out


def main() -> None:
    """Rebuild from the command line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("gguf", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    rebuild(options.gguf, options.out)


if __name__ == "__main__":
    main()
