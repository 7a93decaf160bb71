"""Checkpoint folders as tests want them: real files, weights of a few bytes."""

import json
import struct
from pathlib import Path
from typing import Any

CONFIG: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 3,
    "max_position_embeddings": 4096,
    "vocab_size": 512,
    "torch_dtype": "bfloat16",
}


def tensors(**shapes: tuple[int, ...]) -> bytes:
    """A sound safetensors file of zeros in bfloat16; dots in names are written as `__`."""
    table, at = {}, 0
    for name, shape in shapes.items():
        size = 2
        for length in shape:
            size *= length
        table[name.replace("__", ".")] = {
            "dtype": "BF16",
            "shape": list(shape),
            "data_offsets": [at, at + size],
        }
        at += size
    header = json.dumps(table).encode()
    return struct.pack("<Q", len(header)) + header + bytes(at)


def checkpoint(folder: Path, weights: bytes | None = None, **config: Any) -> Path:
    """A folder with config.json and, when given, `model.safetensors`; None takes a key of the config away."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {name: value for name, value in {**CONFIG, **config}.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(wanted))
    if weights is not None:
        (folder / "model.safetensors").write_bytes(weights)
    return folder


def in_hub(hub: Path, name: str, revisions: dict[str, bytes | None], main: str | None) -> Path:
    """A model in a Hugging Face cache, its files links to blobs as that program lays them out."""
    model = hub / ("models--" + name.replace("/", "--"))
    (model / "blobs").mkdir(parents=True)
    for revision, weights in revisions.items():
        source = checkpoint(model / "blobs" / f"of-{revision}", weights)
        folder = model / "snapshots" / revision
        folder.mkdir(parents=True)
        for file in source.iterdir():
            blob = model / "blobs" / f"{revision}-{file.name}"
            file.rename(blob)
            (folder / file.name).symlink_to(blob)
        source.rmdir()
    if main is not None:
        (model / "refs").mkdir()
        (model / "refs" / "main").write_text(main)
    return model
