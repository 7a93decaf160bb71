"""Safetensors files of strangers: the table at their start, and the checkpoints that they are part of."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from engine_host.library.safetensors_format import MAX_HEADER, read_shard
from tests.hostile.effort import cheap, clear, fuzz, linear, peak_memory
from tests.hostile.making.text import words
from tests.hostile.making.values import NUMBERS, changed, nested, values, written

pytestmark = pytest.mark.fuzz
SOUND: dict[str, Any] = {
    "__metadata__": {"format": "pt"},
    "model.embed_tokens.weight": {"dtype": "BF16", "shape": [8, 4], "data_offsets": [0, 64]},
    "model.layers.0.mlp.experts.0.up_proj.qweight": {"dtype": "I32", "shape": [4], "data_offsets": [64, 80]},
}


def content(table: bytes, length: int | None = None, data: int = 200) -> bytes:
    return struct.pack("<Q", len(table) if length is None else length) + table + bytes(data)


entries = st.dictionaries(
    words,
    st.one_of(
        values,
        st.fixed_dictionaries(
            {
                "dtype": st.one_of(st.sampled_from(["BF16", "F4", "?"]), values),
                "shape": st.one_of(st.lists(st.sampled_from(NUMBERS), max_size=10), values),
                "data_offsets": st.one_of(st.lists(st.sampled_from(NUMBERS), max_size=3), values),
            }
        ),
    ),
    max_size=4,
)
files = st.one_of(
    st.binary(max_size=60),
    values.map(lambda value: content(written(value))),
    entries.map(lambda value: content(written(value))),
    changed(SOUND).map(lambda value: content(written(value))),
    st.builds(content, st.just(written(SOUND)), st.sampled_from([0, 1, 2**20, MAX_HEADER, 2**63, 2**64 - 1])),
    st.integers(0, 300).map(lambda end: content(written(SOUND))[:end]),
)


def test_anything(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"

    def check(made: bytes) -> None:
        file.write_bytes(made)
        found = clear(lambda: read_shard(file))
        for tensor in found.tensors if found is not None else ():
            assert 0 <= tensor.elements < 1 << 61

    fuzz("safetensors", files, check)


def test_absurd_numbers_cost_nothing(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    for number in NUMBERS:
        for shape in ([number], [number] * 100):
            table = {f"t{n}": {"dtype": "F32", "shape": shape, "data_offsets": [0, number]} for n in range(3)}
            file.write_bytes(content(json.dumps(table).encode()))
            cheap(lambda: clear(lambda: read_shard(file)))


def test_depth_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    for kind in ("list", "object"):
        file.write_bytes(content(nested(kind, 200_000)))
        cheap(lambda: clear(lambda: read_shard(file)))


PIECES = (b"[],", b"{},", b'"ab",', b"300,", b'{"a":1},', b"\xf0\x9f\x98\x80")


@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: piece.decode())
def test_what_is_held_grows_with_the_file_and_no_faster(tmp_path: Path, piece: bytes) -> None:
    file = tmp_path / "model.safetensors"

    def of(size: int) -> Callable[[], object]:
        table = b'{"a":[' + piece * (size // len(piece)) + b"1]}"
        file.write_bytes(content(table))
        return lambda: clear(lambda: read_shard(file))

    linear(of, 20_000)
    assert peak_memory(of(1 << 20)) < 30 << 20
