"""The bf16 checkpoint that is rebuilt from the shipped GGUF, and what a damaged GGUF is answered with."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

MODEL = Path(__file__).parents[3] / "resources" / "models" / "sndr-demo"
GGUF = MODEL / "sndr-demo-q8_0.gguf"

Script = Callable[[str], ModuleType]


def read(file: Path) -> tuple[dict[str, Any], bytes]:
    """Return a safetensors file's header and data."""
    raw = file.read_bytes()
    size = struct.unpack_from("<Q", raw)[0]
    return json.loads(raw[8 : 8 + size]), raw[8 + size :]


@pytest.fixture
def rebuilding(script: Script) -> ModuleType:
    return script("gguf_to_safetensors")


def test_the_checkpoint_has_the_names_and_shapes_of_its_config(
    rebuilding: ModuleType, tmp_path: Path
) -> None:
    out = rebuilding.rebuild(GGUF, tmp_path / "checkpoint")
    config = json.loads((out / "config.json").read_text(encoding="utf-8"))
    hidden, vocabulary = config["hidden_size"], config["vocab_size"]
    header, _ = read(out / "model.safetensors")
    shapes = {name: tuple(entry["shape"]) for name, entry in header.items() if name != "__metadata__"}
    assert shapes["model.embed_tokens.weight"] == (vocabulary, hidden)
    assert shapes["mtp.fc.weight"] == (hidden, 2 * hidden)
    for layer, kind in enumerate(config["layer_types"]):
        own = {n.split(".")[3] for n in shapes if n.startswith(f"model.layers.{layer}.")}
        assert ("self_attn" if kind == "full_attention" else "linear_attn") in own
    assert sum(int(np.prod(s)) for s in shapes.values()) == 11_524_448
    for name in rebuilding.SIDE_FILES:
        assert (out / name).exists()


def test_no_value_is_lost_beyond_bfloat16(rebuilding: ModuleType, tmp_path: Path) -> None:
    metadata, tensors = rebuilding.read_gguf(GGUF)
    values = dict(rebuilding.to_checkpoint(metadata, tensors))
    rebuilding.write_safetensors(values, tmp_path / "m.safetensors")
    header, data = read(tmp_path / "m.safetensors")
    for name in ("model.layers.0.linear_attn.A_log", "model.layers.3.self_attn.q_proj.weight"):
        start, end = header[name]["data_offsets"]
        bits = np.frombuffer(data[start:end], dtype="<u2").astype(np.uint32) << 16
        kept = bits.view(np.float32).reshape(values[name].shape)
        assert np.allclose(kept, values[name], rtol=2**-8, atol=1e-30)


def test_grouping_value_heads_undoes_tiling(rebuilding: ModuleType) -> None:
    grouped = np.arange(8, dtype=np.float32)  # heads v0 v1 of key head 0, then of 1, 2, 3
    tiled = np.array([0, 2, 4, 6, 1, 3, 5, 7], dtype=np.float32)
    assert np.array_equal(rebuilding.group_value_heads(tiled, 0, 4, 8), grouped)


@pytest.mark.parametrize("size", [3, 20, 4096, 1_000_000])
def test_a_file_cut_short_is_refused(rebuilding: ModuleType, tmp_path: Path, size: int) -> None:
    cut = tmp_path / "cut.gguf"
    with GGUF.open("rb") as whole:
        cut.write_bytes(whole.read(size))
    with pytest.raises(rebuilding.GgufError):
        rebuilding.read_gguf(cut)


def test_another_architecture_is_refused(rebuilding: ModuleType) -> None:
    with pytest.raises(rebuilding.GgufError, match="qwen35"):
        dict(rebuilding.to_checkpoint({"general.architecture": "llama"}, {}))
