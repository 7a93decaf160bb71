"""Reading GGUF metadata: what is in it, what is wrong with it, and bytes that nobody meant to be a model."""

import struct
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from engine_host.core.errors import HostError
from engine_host.fit.shapes.gguf import unknown_of
from engine_host.library.gguf import read_gguf, split_of
from engine_host.library.gguf_format import kind_of
from engine_host.protocol.errors import Reason
from tests.pace import within

REASONS = {
    Reason.NOT_GGUF,
    Reason.GGUF_TRUNCATED,
    Reason.GGUF_TOO_NEW,
    Reason.MODEL_FILE_DAMAGED,
    Reason.MODEL_FILE_MISSING,
    Reason.UNSUPPORTED,
}
U32, I32, F32, BOOL, STRING, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10
Item = tuple[str, int, Any]


def text(value: str) -> bytes:
    content = value.encode()
    return struct.pack("<Q", len(content)) + content


def value(kind: int, content: Any) -> bytes:
    if kind == STRING:
        return text(content)
    if kind == ARRAY:
        item_kind, items = content
        return struct.pack("<IQ", item_kind, len(items)) + b"".join(value(item_kind, item) for item in items)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?", U64: "<Q"}[kind], content)


MODEL: list[Item] = [
    ("general.architecture", STRING, "qwen35"),
    ("general.name", STRING, "Small One"),
    ("general.license", STRING, "apache-2.0"),
    ("general.file_type", U32, 7),
    ("qwen35.context_length", U32, 4096),
    ("qwen35.block_count", U32, 9),
    ("qwen35.embedding_length", U32, 256),
    ("qwen35.attention.head_count", U32, 4),
    ("qwen35.attention.head_count_kv", ARRAY, (I32, [0, 0, 0, 2, 0, 0, 0, 2, 2])),
    ("qwen35.full_attention_interval", U32, 4),
    ("qwen35.ssm.state_size", U32, 64),
    ("qwen35.nextn_predict_layers", U32, 1),
    ("tokenizer.ggml.model", STRING, "gpt2"),
    ("tokenizer.ggml.pre", STRING, "qwen2"),
    ("tokenizer.ggml.tokens", ARRAY, (STRING, [f"t{n}" for n in range(50)])),
    ("tokenizer.ggml.fim_mid_token_id", U32, 3),
    ("tokenizer.ggml.fim_pre_token_id", U32, 1),
    ("tokenizer.ggml.suffix_token_id", U32, 2),
    ("tokenizer.chat_template", STRING, "{{ messages }}"),
]
Shaped = tuple[str, tuple[int, ...], int]
TENSORS: list[Shaped] = [("token_embd.weight", (256, 50), 8), ("blk.8.nextn.eh_proj.weight", (512, 256), 0)]


def gguf(items: list[Item] = MODEL, tensors: list[Shaped] = TENSORS) -> bytes:
    """A whole file; tensor type 8 is Q8_0 (34 bytes for 32 elements), type 0 is F32."""
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(items))
    header += b"".join(
        text(key) + struct.pack("<I", kind) + value(kind, content) for key, kind, content in items
    )
    offset = 0
    for name, shape, kind in tensors:
        elements = 1
        for length in shape:
            elements *= length
        header += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        header += struct.pack("<IQ", kind, offset)
        offset += elements * 34 // 32 if kind == 8 else elements * 4
    return header + b"\0" * (-len(header) % 32) + b"\0" * offset


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "small-q8_0.gguf"


def reason_for(path: Path, content: bytes) -> HostError:
    path.write_bytes(content)
    with pytest.raises(HostError) as caught:
        read_gguf(path)
    return caught.value


def test_a_model_is_read_whole(path: Path) -> None:
    path.write_bytes(gguf())
    info = read_gguf(path)
    assert (info.architecture, info.name, info.licence) == ("qwen35", "Small One", "apache-2.0")
    assert info.quantization == "Q8_0"
    assert info.parameters == 256 * 50 + 512 * 256
    assert info.size == path.stat().st_size
    assert info.context == 4096
    # The MTP layer is counted in the file's block count, and is no layer of the model.
    assert (info.layers, info.mtp_layers) == (8, 1)
    assert info.attention_layers == 2
    assert (info.heads, info.kv_heads, info.head_dim, info.fewest_kv_heads) == (4, 2, 64, 0)
    assert unknown_of(info) == (), "layers with a state have no heads for keys"
    assert "0 to 2; all are counted with 2" in unknown_of(replace(info, ssm={}))[0]
    assert "1 to 2" in unknown_of(replace(info, fewest_kv_heads=1))[0]
    assert info.ssm == {"state_size": 64}
    assert info.vocabulary == 50
    assert info.chat_template
    assert info.fim
    assert info.fim_ids == (1, 2, 3)
    assert (info.tokenizer, info.tokenizer_pre) == ("gpt2", "qwen2")
    assert not info.embedding_only


@pytest.mark.parametrize(
    ("template", "tools"),
    [
        ("{{ messages }}", False),
        ("{% if my_tools %}{{ x.toolset }}{% endif %}", False),
        ("{%- if tools %}{{ tools | tojson }}{% endif %}{{ messages }}", True),
        ("{% for tool in (tools or []) %}{% endfor %}", True),
    ],
)
def test_a_template_that_takes_tools_is_known(path: Path, template: str, tools: bool) -> None:
    path.write_bytes(gguf([*MODEL[:-1], ("tokenizer.chat_template", STRING, template)]))
    assert read_gguf(path).tools is tools


def test_what_the_file_does_not_say_is_none(path: Path) -> None:
    path.write_bytes(gguf([("general.architecture", STRING, "llama")]))
    info = read_gguf(path)
    assert (info.context, info.layers, info.head_dim, info.vocabulary, info.licence) == (None,) * 5
    assert info.name == "small-q8_0"
    # No label in the file: the type that holds most of the bytes.
    assert info.quantization == "F32"


def test_pooling_means_embedding(path: Path) -> None:
    path.write_bytes(gguf([("general.architecture", STRING, "qwen3"), ("qwen3.pooling_type", U32, 3)]))
    info = read_gguf(path)
    assert (info.embedding_only, info.pooling, info.causal) == (True, "last", True)
    path.write_bytes(gguf([("general.architecture", STRING, "qwen3"), ("qwen3.pooling_type", U32, 99)]))
    assert read_gguf(path).pooling == "", "a kind that is not known here"


def test_a_model_that_reads_a_text_at_once_says_so(path: Path) -> None:
    path.write_bytes(gguf([("general.architecture", STRING, "nomic-bert")]))
    assert not read_gguf(path).causal
    name = "gemma3.attention.causal"
    path.write_bytes(gguf([("general.architecture", STRING, "gemma3"), (name, BOOL, False)]))
    assert not read_gguf(path).causal


def test_a_file_cut_in_its_data_says_how_much_is_missing(path: Path) -> None:
    whole = gguf()
    error = reason_for(path, whole[:-1000])
    assert error.reason is Reason.GGUF_TRUNCATED
    assert error.problem.evidence["expected"] == len(whole)
    assert error.problem.evidence["missing"] == 1000


@pytest.mark.parametrize("length", [5, 20, 30, 200, 900])
def test_a_file_cut_in_its_header(path: Path, length: int) -> None:
    assert reason_for(path, gguf()[:length]).reason is Reason.GGUF_TRUNCATED


def test_versions(path: Path) -> None:
    content = gguf()
    newer = reason_for(path, content[:4] + struct.pack("<I", 9) + content[8:])
    assert newer.reason is Reason.GGUF_TOO_NEW
    assert "version 9" in str(newer)
    for version in (struct.pack("<I", 1), struct.pack(">I", 3)):
        assert reason_for(path, content[:4] + version + content[8:]).reason is Reason.UNSUPPORTED


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (b"", "an empty file"),
        (b"PK\x03\x04rest", "a ZIP archive"),
        (b"<!DOCTYPE html><html>", "a web page"),
        (struct.pack("<Q", 40) + b'{"__metadata__":{}}', "a safetensors file"),
        (b'{"error": "not found"}', "a JSON document"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b"\0" * 512, "a file of zeros"),
        (b"\x7fELF\x02", "a Linux program"),
        (b"ggml", "an old GGML model"),
        (b"hello\n", "a text file"),
        (bytes(range(128, 256)), "an unknown kind"),
    ],
)
def test_other_kinds_are_named(path: Path, start: bytes, words: str) -> None:
    assert words in kind_of(start)
    error = reason_for(path, start)
    assert error.reason is Reason.NOT_GGUF
    assert words in str(error)


def test_no_file_and_no_regular_file(tmp_path: Path) -> None:
    for path in (tmp_path / "none.gguf", tmp_path):
        with pytest.raises(HostError) as caught:
            read_gguf(path)
        assert caught.value.reason is Reason.MODEL_FILE_MISSING


def test_parts_are_read_together(tmp_path: Path) -> None:
    first, second = (tmp_path / f"big-0000{n}-of-00002.gguf" for n in (1, 2))
    first.write_bytes(gguf([*MODEL, ("split.count", U32, 2)]))
    with pytest.raises(HostError) as caught:
        read_gguf(first)
    assert caught.value.problem.evidence["missing"] == [second.name]
    second.write_bytes(gguf([("split.count", U32, 2)], [("blk.0.ffn_up.weight", (32, 4), 0)]))
    info = read_gguf(first)
    assert info.parts == (first, second)
    assert info.parameters == 256 * 50 + 512 * 256 + 128
    assert info.size == first.stat().st_size + second.stat().st_size
    with pytest.raises(HostError, match="part 2 of 2"):
        read_gguf(second)
    assert split_of(second) == (2, 2)


@pytest.mark.parametrize(
    "content",
    [
        b"GGUF" + struct.pack("<IQQ", 3, 1 << 62, 0),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 62),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 63),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", ARRAY, STRING, 1 << 40),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", ARRAY, U64, 1 << 61),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<I", 99),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", ARRAY, ARRAY, 1) * 40,
        gguf([("general.alignment", U32, 0)]),
        gguf(MODEL, [("x", (32,), 0)]).replace(struct.pack("<IQ", 1, 32), struct.pack("<IQ", 1, 1 << 62)),
    ],
    ids=["tensors", "values", "key", "strings", "numbers", "type", "nesting", "alignment", "shape"],
)
def test_counts_that_no_file_has(path: Path, content: bytes) -> None:
    began = time.process_time()
    assert reason_for(path, content).reason in {Reason.MODEL_FILE_DAMAGED, Reason.GGUF_TRUNCATED}
    assert time.process_time() - began < 1


FUZZ = settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])


def survives(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    problem = None
    try:
        read_gguf(path)
    except HostError as error:
        problem = error.problem
    assert problem is None or (problem.reason in REASONS and problem.sentence())


@FUZZ
@given(content=st.binary(max_size=600))
@example(content=b"GGUF")
def test_any_bytes(path: Path, content: bytes) -> None:
    survives(path, content)
    survives(path, b"GGUF\x03\0\0\0" + content)


@FUZZ
@given(data=st.data())
def test_changed_bytes(path: Path, data: st.DataObject) -> None:
    content = bytearray(gguf()[:1400])
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(4, len(content) - 1))] = data.draw(st.integers(0, 255))
    at = data.draw(st.integers(0, len(content)))
    survives(path, bytes(content[:at]))
    # The data behind the header is there or not: both must end in an answer.
    survives(path, bytes(content) + b"\0" * 600_000)


@pytest.mark.parametrize(("kind", "count"), [("tensors", 20_001), ("values", 10_001), ("strings", 3_000_001)])
def test_more_than_any_model_has_is_refused_at_once(tmp_path: Path, kind: str, count: int) -> None:
    head = text("k") + struct.pack("<IIQ", ARRAY, STRING, count)
    counts = {"tensors": (count, 0), "values": (0, count), "strings": (0, 1)}[kind]
    path = tmp_path / "many.gguf"
    with path.open("wb") as file:
        file.write(struct.pack("<4sIQQ", b"GGUF", 3, *counts) + (head if kind == "strings" else b""))
        file.truncate(1 << 30)
    began = time.thread_time()
    with pytest.raises(HostError) as caught:
        read_gguf(path)
    assert caught.value.reason is Reason.MODEL_FILE_DAMAGED
    assert within(time.thread_time() - began, 0.1)


def test_what_is_kept_of_a_header_has_a_bound(tmp_path: Path) -> None:
    values = b"".join(text(f"k{n}") + struct.pack("<I", STRING) + text("x" * (3 << 20)) for n in range(5))
    path = tmp_path / "large.gguf"
    path.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 0, 5) + values)
    with pytest.raises(HostError) as caught:
        read_gguf(path)
    assert caught.value.reason is Reason.MODEL_FILE_DAMAGED


def test_counts_by_layer_have_the_bounds_of_other_counts(tmp_path: Path) -> None:
    items: list[Item] = [
        ("general.architecture", STRING, "llama"),
        ("llama.block_count", ARRAY, (U64, [2**63, 4, 2**50])),
        ("general.license", STRING, "x" * 5000),
    ]
    path = tmp_path / "odd.gguf"
    packed = b"".join(
        text(name) + struct.pack("<I", kind) + value(kind, content) for name, kind, content in items
    )
    path.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 0, 3) + packed)
    info = read_gguf(path)
    assert info.layers == 4
    assert len(info.licence or "") < 300
