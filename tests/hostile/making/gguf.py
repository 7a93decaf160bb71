"""GGUF files as nobody should write them: wrong counts, absurd numbers, cut and flipped bytes."""

import struct
from typing import Any

from hypothesis import strategies as st

from tests.hostile.making.text import long_words, words

SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
STRING, ARRAY = 8, 9
ARCHITECTURES = ("llama", "qwen35", "x" * 300, "a.b", "", "bert")
KEYS = (
    "general.architecture",
    "general.name",
    "general.type",
    "general.license",
    "general.file_type",
    "general.alignment",
    "split.count",
    "tokenizer.ggml.tokens",
    "tokenizer.ggml.model",
    "tokenizer.ggml.pre",
    "tokenizer.chat_template",
    "tokenizer.ggml.fim_mid_token_id",
    *(
        f"qwen35.{name}"
        for name in (
            "block_count",
            "context_length",
            "embedding_length",
            "feed_forward_length",
            "attention.head_count",
            "attention.head_count_kv",
            "attention.key_length",
            "attention.value_length",
            "attention.sliding_window",
            "full_attention_interval",
            "nextn_predict_layers",
            "ssm.conv_kernel",
            "ssm.inner_size",
            "ssm.state_size",
            "ssm.time_step_rank",
            "ssm.group_count",
            "expert_count",
            "expert_used_count",
            "expert_feed_forward_length",
            "pooling_type",
            "vocab_size",
        )
    ),
)
COUNTS = (0, 1, 2, 3, 100, 4096, 4097, 2**20, 2**31, 2**32 - 1, 2**40, 2**48, 2**60, 2**63, 2**64 - 1)


def text(content: str | bytes) -> bytes:
    """A string with its length before it."""
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return struct.pack("<Q", len(raw)) + raw


def scalar(kind: int, value: Any) -> bytes:
    """A number of a kind, brought into its bounds."""
    form = SCALARS[kind]
    if form in ("<f", "<d"):
        try:
            return struct.pack(form, value)
        except (OverflowError, struct.error):
            return struct.pack(form, float("inf"))
    if form == "<?":
        return b"\x01" if value else b"\x02"
    size = struct.calcsize(form)
    return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")


counts = st.one_of(st.sampled_from(COUNTS), st.integers(0, 5000))
kinds = st.sampled_from(list(SCALARS))
_scalars = st.builds(lambda kind, value: struct.pack("<I", kind) + scalar(kind, value), kinds, counts)
_strings = st.one_of(words, long_words).map(lambda content: struct.pack("<I", STRING) + text(content))
_arrays = st.builds(
    lambda kind, declared, items: (
        struct.pack("<IIQ", ARRAY, kind, declared if declared is not None else len(items))
        + b"".join(scalar(kind, item) for item in items)
    ),
    kinds,
    st.one_of(st.none(), counts),
    st.lists(counts, max_size=20),
)
_texts = st.builds(
    lambda declared, items: (
        struct.pack("<IIQ", ARRAY, STRING, declared if declared is not None else len(items))
        + b"".join(map(text, items))
    ),
    st.one_of(st.none(), counts),
    st.lists(words, max_size=6),
)
_odd = st.one_of(
    st.builds(lambda kind: struct.pack("<I", kind) + bytes(8), st.integers(0, 2**32 - 1)),
    # Arrays in arrays in arrays.
    st.integers(1, 50).map(
        lambda depth: struct.pack("<I", ARRAY) + struct.pack("<IQ", ARRAY, 1) * depth + bytes(12)
    ),
    counts.map(lambda length: struct.pack("<IQ", STRING, length) + b"abc"),
)
_value = st.one_of(_scalars, _scalars, _strings, _arrays, _texts, _odd)
_pair = st.builds(lambda key, value: text(key) + value, st.one_of(st.sampled_from(KEYS), words), _value)
_named = st.builds(
    lambda name: text("general.architecture") + struct.pack("<I", STRING) + text(name),
    st.sampled_from(ARCHITECTURES),
)
_tensor = st.builds(
    lambda name, dimensions, shape, kind, offset: (
        text(name)
        + struct.pack("<I", dimensions if dimensions is not None else len(shape))
        + b"".join(struct.pack("<Q", length) for length in shape)
        + struct.pack("<IQ", kind, offset)
    ),
    st.one_of(
        words,
        st.sampled_from(["blk.0.attn_q.weight", "token_embd.weight", "blk.99999999999.nextn.x", "a" * 1025]),
    ),
    st.one_of(st.none(), st.none(), st.sampled_from([0, 4, 8, 9, 2**32 - 1])),
    st.lists(counts, max_size=9),
    st.one_of(st.integers(0, 45), st.just(2**32 - 1)),
    counts,
)


def _file(
    version: int,
    tensor_count: int | None,
    value_count: int | None,
    pairs: list[bytes],
    tensors: list[bytes],
    tail: int,
) -> bytes:
    head = struct.pack(
        "<4sIQQ",
        b"GGUF",
        version,
        len(tensors) if tensor_count is None else tensor_count,
        len(pairs) if value_count is None else value_count,
    )
    return head + b"".join(pairs) + b"".join(tensors) + bytes(tail)


_count = st.one_of(st.none(), st.none(), st.none(), counts)
structured = st.builds(
    _file,
    st.sampled_from([3, 3, 3, 2, 1, 0, 4, 0x03000000]),
    _count,
    _count,
    st.builds(lambda first, rest: [first, *rest], _named, st.lists(_pair, max_size=14)),
    st.lists(_tensor, max_size=4),
    st.sampled_from([0, 31, 32, 64, 5000]),
)
"""Files with the right frame and anything in it."""


def damaged(sound: bytes) -> st.SearchStrategy[bytes]:
    """A sound file, cut, with bytes flipped, or with one of its numbers replaced."""

    def flip(places: list[tuple[int, int]]) -> bytes:
        made = bytearray(sound)
        for place, value in places:
            made[place % len(made)] = value
        return bytes(made)

    def put(place: int, value: int) -> bytes:
        at = place % max(len(sound) - 8, 1)
        return sound[:at] + struct.pack("<Q", value) + sound[at + 8 :]

    return st.one_of(
        st.integers(0, len(sound)).map(lambda end: sound[:end]),
        st.lists(st.tuples(st.integers(0, len(sound)), st.integers(0, 255)), max_size=8).map(flip),
        st.builds(put, st.integers(0, len(sound)), counts),
        st.integers(0, len(sound)).map(lambda at: sound[at:] + sound[:at]),
    )
