"""Servers to test with, and tiny random models of real architectures: no download, a tenth of a second."""

import asyncio
import os
from pathlib import Path

import gguf
import numpy as np
import platformdirs
import pytest

from engine_host.engines.llamacpp.build.install import install_wheel
from engine_host.engines.llamacpp.build.toolchain import build_key, find_toolchain
from engine_host.engines.llamacpp.servers import (
    ServerCapabilities,
    ServerProber,
    built_command,
    prebuilt_command,
)
from engine_host.engines.llamacpp.source.patching import patch_files

CACHE = Path(os.environ.get("SNDR_CACHE") or platformdirs.user_cache_path("sndr", appauthor=False))

CHAT_TEMPLATE = (
    "{%- if tools %}<|im_start|>system\n# Tools\n<tools>\n"
    "{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}</tools>\n"
    'For each call answer <tool_call>\n{"name": NAME, "arguments": ARGUMENTS}\n</tool_call><|im_end|>\n'
    "{% endif %}{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}"
    "{%- if m.tool_calls %}{% for c in m.tool_calls %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>'
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<tool_call>",
    "</tool_call>",
]


def byte_letters() -> list[str]:
    """Gives GPT-2's printable stand-in for each byte, in the order of the bytes."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {b: chr(b) for b in keep}
    extra = 0
    for b in range(256):
        if b not in letters:
            letters[b] = chr(256 + extra)
            extra += 1
    return [letters[b] for b in range(256)]


def write_tiny(
    path: Path,
    *,
    arch: str = "qwen35",
    mtp: bool = True,
    quantised: bool = True,
    seed: int = 1,
    width: int = 128,
    layers: int = 4,
    context: int = 4096,
) -> Path:
    """Writes a random model of `arch` ("qwen35", hybrid with an optional MTP layer, or "qwen3") to `path`."""
    rng = np.random.default_rng(seed)
    hybrid = arch == "qwen35"
    mtp = mtp and hybrid
    heads, kv_heads, head_dim, ff = 2, 1, 64, width * 2
    state, groups, ranks = 64, 2, 4
    w = gguf.GGUFWriter(str(path), arch)
    w.add_name("tiny random " + arch)
    w.add_context_length(context)
    w.add_embedding_length(width)
    w.add_block_count(layers + (1 if mtp else 0))
    w.add_feed_forward_length(ff)
    w.add_head_count(heads)
    w.add_head_count_kv(kv_heads)
    w.add_key_length(head_dim)
    w.add_value_length(head_dim)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_rope_freq_base(1e6)
    w.add_rope_dimension_count(head_dim)
    w.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0 if quantised else gguf.LlamaFileType.ALL_F32)
    w.add_license("mit")
    if hybrid:
        w.add_rope_dimension_sections([11, 11, 10, 0])
        w.add_ssm_conv_kernel(4)
        w.add_ssm_inner_size(ranks * state)
        w.add_ssm_state_size(state)
        w.add_ssm_time_step_rank(ranks)
        w.add_ssm_group_count(groups)
        w.add_full_attention_interval(4)
    if mtp:
        w.add_nextn_predict_layers(1)
    tokens = [*byte_letters(), *SPECIAL, "th"]
    pad = (-len(tokens)) % 32
    tokens += [f"<|unused{i}|>" for i in range(pad)]
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list(tokens)
    control = [gguf.TokenType.CONTROL] * len(SPECIAL)
    control[-2:] = [gguf.TokenType.USER_DEFINED] * 2
    w.add_token_types(
        [gguf.TokenType.NORMAL] * 256 + control + [gguf.TokenType.NORMAL] + [gguf.TokenType.UNUSED] * pad
    )
    w.add_token_merges(["t h"])
    w.add_eos_token_id(258)
    w.add_pad_token_id(256)
    w.add_uint32("tokenizer.ggml.fim_pre_token_id", 259)
    w.add_uint32("tokenizer.ggml.fim_mid_token_id", 260)
    w.add_uint32("tokenizer.ggml.fim_suf_token_id", 261)
    w.add_chat_template(CHAT_TEMPLATE)

    def put(name: str, *shape: int, ones: bool = False, plain: bool = False) -> None:
        data = np.ones(shape, np.float32) if ones else rng.normal(0, 0.05, shape).astype(np.float32)
        if ones or plain or not quantised or shape[-1] % 32:
            w.add_tensor(name, data)
        else:
            w.add_tensor(
                name,
                gguf.quants.quantize(data, gguf.GGMLQuantizationType.Q8_0),
                raw_dtype=gguf.GGMLQuantizationType.Q8_0,
            )

    vocab = len(tokens)
    put("token_embd.weight", vocab, width)
    put("output_norm.weight", width, ones=True)
    put("output.weight", vocab, width)
    for i in range(layers + (1 if mtp else 0)):
        b = f"blk.{i}."
        put(b + "attn_norm.weight", width, ones=True)
        put(b + ("post_attention_norm.weight" if hybrid else "ffn_norm.weight"), width, ones=True)
        if hybrid and i < layers and (i + 1) % 4:
            key, value = state * groups, state * ranks
            put(b + "attn_qkv.weight", key * 2 + value, width)
            put(b + "attn_gate.weight", value, width)
            put(b + "ssm_conv1d.weight", key * 2 + value, 4, plain=True)
            put(b + "ssm_dt.bias", ranks, ones=True)
            w.add_tensor(b + "ssm_a", -np.ones(ranks, np.float32))
            put(b + "ssm_beta.weight", ranks, width)
            put(b + "ssm_alpha.weight", ranks, width)
            put(b + "ssm_norm.weight", state, ones=True)
            put(b + "ssm_out.weight", width, value)
        else:
            put(b + "attn_q.weight", heads * head_dim * (2 if hybrid else 1), width)
            put(b + "attn_k.weight", kv_heads * head_dim, width)
            put(b + "attn_v.weight", kv_heads * head_dim, width)
            put(b + "attn_output.weight", width, heads * head_dim)
            put(b + "attn_q_norm.weight", head_dim, ones=True)
            put(b + "attn_k_norm.weight", head_dim, ones=True)
        put(b + "ffn_gate.weight", ff, width)
        put(b + "ffn_up.weight", ff, width)
        put(b + "ffn_down.weight", width, ff)
        if i >= layers:
            put(b + "nextn.eh_proj.weight", width, 2 * width)
            put(b + "nextn.enorm.weight", width, ones=True)
            put(b + "nextn.hnorm.weight", width, ones=True)
            put(b + "nextn.shared_head_norm.weight", width, ones=True)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return path


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Models by name: `mtp`, a hybrid with an MTP layer, and `plain`, a Qwen3 without one."""
    folder = tmp_path_factory.mktemp("models")
    return {
        "mtp": write_tiny(folder / "tiny-mtp-q8_0.gguf", arch="qwen35"),
        "plain": write_tiny(folder / "tiny-plain-q8_0.gguf", arch="qwen3"),
    }


@pytest.fixture(scope="session")
def built_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine's folder, installed from the wheel that the build left in the cache."""
    wheels = CACHE / "llama.cpp" / "wheels" / build_key(find_toolchain(), patch_files())
    wheel = next(iter(wheels.glob("*.whl")), None)
    if wheel is None:
        pytest.fail("llama.cpp is not built: python -m engine_host.engines.llamacpp.build.builder --out DIR")
    folder = tmp_path_factory.mktemp("engine") / "llama.cpp"
    install_wheel(wheel, folder, lambda _share, _detail: None)
    return folder


@pytest.fixture(scope="session", params=["built", "prebuilt"])
def server(request: pytest.FixtureRequest) -> ServerCapabilities:
    """Each of the servers that this program brings, probed."""
    if request.param == "built":
        command = built_command(request.getfixturevalue("built_folder"))
    else:
        command = prebuilt_command()
    if command is None:
        pytest.fail(f"the {request.param} server is not installed: make setup")
    return asyncio.run(ServerProber().probe(command))
