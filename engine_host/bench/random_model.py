"""Random-weight GGUF files: engines can be measured and tested without a downloaded model.

A random model answers nonsense at the same speed as a trained one of its shape, because the arithmetic is
the same; only figures that depend on the text (acceptance of a draft, stop tokens) mean nothing.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

_CHAT = """\
{%- if tools %}
    {{- '<|im_start|>system\\n# Tools\\n\\n<tools>' }}
    {%- for tool in tools %}
        {{- '\\n' }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- '\\n</tools><|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' + (message.content or '') }}
        {%- for call in message.tool_calls or [] %}
            {%- if not loop.first or message.content %}
                {{- '\\n' }}
            {%- endif %}
            {{- '<tool_call>\\n<function=' + call.function.name + '>\\n' }}
            {%- for name, value in call.function.arguments | items %}
                {{- '<parameter=' + name + '>\\n' }}
                {{- value if value is string else value | tojson }}
                {{- '\\n</parameter>\\n' }}
            {%- endfor %}
            {{- '</function>\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + (message.content or '') + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
TOOL_CALL = "<tool_call>"
"""One token of its own: a bias on it makes even a random model call a tool."""

_MARKS = (TOOL_CALL, "</tool_call>")
_SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
)


@dataclass(frozen=True)
class Shape:
    """The sizes of a Qwen3-like decoder; `context` in tokens."""

    layers: int
    width: int
    feed_forward: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    context: int = 8192


TINY = Shape(layers=2, width=64, feed_forward=128, heads=2, kv_heads=1, head_size=32, vocabulary=1024)
SMALL = Shape(
    layers=8, width=256, feed_forward=768, heads=4, kv_heads=2, head_size=64, vocabulary=4096
)  # 10 million parameters: the demo model's class.
QWEN3_06B = Shape(
    layers=28, width=1024, feed_forward=3072, heads=16, kv_heads=8, head_size=128, vocabulary=151_936
)


def write_random_model(
    path: Path, shape: Shape, *, quantization: str = "Q8_0", seed: int = 1, fill_in_the_middle: bool = True
) -> Path:
    """Write a GGUF with random weights and return its path; raises ValueError for another quantization.

    `quantization` is `Q8_0` or `Q4_0`. The blocks are drawn at random as stored, so even 0.6 billion
    parameters take seconds. Source of the layout: the gguf package.
    """
    import gguf
    import numpy as np

    if quantization not in {"Q8_0", "Q4_0"}:
        raise ValueError(f"quantization is Q8_0 or Q4_0, not {quantization}")
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "qwen3")
    _describe(writer, gguf, shape, quantization, fill_in_the_middle)
    kind = gguf.GGMLQuantizationType[quantization]

    def matrix(name: str, rows: int, columns: int) -> None:
        writer.add_tensor(name, _blocks(random, rows, columns, quantization), raw_dtype=kind)

    def norm(name: str, size: int) -> None:
        writer.add_tensor(name, np.ones(size, dtype=np.float32))

    matrix("token_embd.weight", shape.vocabulary, shape.width)
    norm("output_norm.weight", shape.width)
    for layer in range(shape.layers):
        block = f"blk.{layer}."
        norm(block + "attn_norm.weight", shape.width)
        norm(block + "ffn_norm.weight", shape.width)
        norm(block + "attn_q_norm.weight", shape.head_size)
        norm(block + "attn_k_norm.weight", shape.head_size)
        matrix(block + "attn_q.weight", shape.heads * shape.head_size, shape.width)
        matrix(block + "attn_k.weight", shape.kv_heads * shape.head_size, shape.width)
        matrix(block + "attn_v.weight", shape.kv_heads * shape.head_size, shape.width)
        matrix(block + "attn_output.weight", shape.width, shape.heads * shape.head_size)
        matrix(block + "ffn_gate.weight", shape.feed_forward, shape.width)
        matrix(block + "ffn_up.weight", shape.feed_forward, shape.width)
        matrix(block + "ffn_down.weight", shape.width, shape.feed_forward)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _describe(writer: Any, gguf: Any, shape: Shape, quantization: str, fill_in_the_middle: bool) -> None:
    """Write the metadata: architecture, vocabulary and chat template."""
    writer.add_name("SNDR random")
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_size)
    writer.add_value_length(shape.head_size)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1_000_000.0)
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{quantization}"])
    tokens, kinds = _vocabulary(shape.vocabulary, gguf)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(["a b"])
    first = len(tokens) - len(_SPECIAL)
    writer.add_eos_token_id(first + 2)
    writer.add_pad_token_id(first)
    writer.add_add_bos_token(False)
    if fill_in_the_middle:
        writer.add_uint32("tokenizer.ggml.fim_pre_token_id", first + 3)
        writer.add_uint32("tokenizer.ggml.fim_mid_token_id", first + 4)
        writer.add_uint32("tokenizer.ggml.fim_suf_token_id", first + 5)
    writer.add_chat_template(_CHAT)


def _vocabulary(size: int, gguf: Any) -> tuple[list[str], list[int]]:
    """All single bytes, made-up words, and the special tokens last."""
    # GPT-2's printable alphabet for bytes: the ones that are not printable move above 255.
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [value for value in range(256) if value not in printable]
    alphabet = [chr(value) for value in printable] + [chr(256 + place) for place in range(len(moved))]
    plain = size - len(alphabet) - len(_MARKS) - len(_SPECIAL)
    words = [f"Ġw{number:x}" for number in range(plain)]
    kinds = [int(gguf.TokenType.NORMAL)] * (len(alphabet) + len(words))
    kinds += [int(gguf.TokenType.USER_DEFINED)] * len(_MARKS)
    kinds += [int(gguf.TokenType.CONTROL)] * len(_SPECIAL)
    return [*alphabet, *words, *_MARKS, *_SPECIAL], kinds


def tool_call_token(shape: Shape) -> int:
    """The number of the token that begins a tool call."""
    return shape.vocabulary - len(_SPECIAL) - len(_MARKS)


def _blocks(random: "Generator", rows: int, columns: int, quantization: str) -> "NDArray[Any]":
    """Random weights as stored: for 32 weights a half-precision scale, then 32 or 16 bytes."""
    import numpy as np

    payload = 32 if quantization == "Q8_0" else 16
    spread = 74.0 if quantization == "Q8_0" else 4.6  # Standard deviation of uniform int8 and of a nibble.
    scale = np.array([1.0 / (spread * columns**0.5)], dtype=np.float16).view(np.uint8)
    blocks = random.integers(0, 256, size=(rows, columns // 32, 2 + payload), dtype=np.uint8)
    blocks[:, :, :2] = scale
    return blocks.reshape(rows, columns // 32 * (2 + payload))
