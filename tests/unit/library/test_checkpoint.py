"""Reading a checkpoint folder: what is in it, what is missing, and files that nobody meant to be a model."""

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from engine_host.core.errors import HostError
from engine_host.core.package_data import resources
from engine_host.library.checkpoint import read_checkpoint
from engine_host.library.safetensors_format import read_shard
from engine_host.protocol.errors import Reason
from tests.unit.library.checkpoints import checkpoint, tensors

BUNDLED = resources() / "models" / "sndr-demo"


def problem_of(folder: Path) -> HostError:
    with pytest.raises(HostError) as raised:
        read_checkpoint(folder)
    return raised.value


def test_the_bundled_checkpoint_is_read() -> None:
    info = read_checkpoint(BUNDLED)
    assert info.architecture == "Qwen3_5ForCausalLM"
    assert (info.context, info.layers, info.heads, info.kv_heads, info.head_dim) == (8192, 8, 4, 2, 64)
    assert info.hybrid
    assert info.attention_layers == 2
    assert info.mtp_layers == 1
    assert info.vocabulary == 8192
    assert info.tokenizer
    assert "<tool_call>" in info.chat_template
    assert info.fim_tokens is not None
    assert info.fim_tokens.middle == "<|fim_middle|>"
    assert info.licence == "apache-2.0"
    assert not info.embedding_only


def test_a_dense_model_with_weights(tmp_path: Path) -> None:
    info = read_checkpoint(checkpoint(tmp_path / "m", tensors(a__weight=(4, 8), b=(2,))))
    assert (info.format, info.parameters, info.quantization) == ("safetensors", 34, "BF16")
    assert (info.head_dim, info.attention_layers, info.hybrid) == (16, 3, False)
    assert info.size == (tmp_path / "m" / "model.safetensors").stat().st_size
    assert (info.tokenizer, info.chat_template, info.fim) == (False, "", False)


def test_a_config_without_weights_is_a_shape(tmp_path: Path) -> None:
    info = read_checkpoint(checkpoint(tmp_path / "m"))
    assert (info.format, info.shape, info.size, info.parameters) == ("shape", True, 0, None)
    assert (info.context, info.layers, info.quantization) == (4096, 3, "BF16")


def test_settings_of_the_language_model_one_level_down(tmp_path: Path) -> None:
    text = {
        "max_position_embeddings": 262144,
        "num_hidden_layers": 4,
        "head_dim": 256,
        "mtp_num_hidden_layers": 1,
    }
    folder = checkpoint(tmp_path / "m", text_config=text, architectures=["Qwen3_5ForConditionalGeneration"])
    info = read_checkpoint(folder)
    assert (info.context, info.layers, info.head_dim, info.mtp_layers) == (262144, 4, 256, 1)
    assert info.architecture == "Qwen3_5ForConditionalGeneration"


@pytest.mark.parametrize(
    ("config", "sees_and_hears"),
    [
        ({}, (False, False)),
        ({"vision_config": None, "audio_config": 7}, (False, False)),
        ({"vision_config": {}}, (True, False)),
        # As Qwen2-Audio has it, and Qwen2.5-Omni.
        ({"audio_config": {"d_model": 8}}, (False, True)),
        ({"thinker_config": {"vision_config": {}, "audio_config": {}}}, (True, True)),
    ],
)
def test_what_a_model_takes_beside_text(
    tmp_path: Path, config: dict[str, Any], sees_and_hears: tuple[bool, bool]
) -> None:
    info = read_checkpoint(checkpoint(tmp_path / "m", **config))
    assert (info.images, info.audio) == sees_and_hears


def test_an_interval_makes_a_hybrid(tmp_path: Path) -> None:
    info = read_checkpoint(checkpoint(tmp_path / "m", num_hidden_layers=8, full_attention_interval=4))
    assert info.layer_types[3] == info.layer_types[7] == "full_attention"
    assert (info.hybrid, info.attention_layers) == (True, 2)
    sliding = ["sliding_attention", "full_attention"]
    info = read_checkpoint(checkpoint(tmp_path / "s", num_hidden_layers=2, layer_types=sliding))
    assert (info.hybrid, info.attention_layers) == (False, 2)


@pytest.mark.parametrize(
    ("names", "layers"),
    [
        ({"mtp__fc__weight": (2, 2)}, 1),
        ({"model__layers__3__eh_proj__weight": (2, 2)}, 1),
        ({"model__layers__2__mlp__weight": (2, 2)}, 0),
    ],
    ids=["qwen", "deepseek", "stripped"],
)
def test_layers_for_drafting_count_only_where_their_weights_are(
    tmp_path: Path, names: dict[str, tuple[int, ...]], layers: int
) -> None:
    folder = checkpoint(tmp_path / "m", tensors(**names), num_nextn_predict_layers=1)
    assert read_checkpoint(folder).mtp_layers == layers


@pytest.mark.parametrize(
    ("method", "label"),
    [
        ({"quant_method": "fp8", "fmt": "e4m3"}, "fp8 e4m3"),
        ({"quant_method": "gptq", "bits": 4}, "gptq 4-bit"),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "pack-quantized",
                "config_groups": {"group_0": {"weights": {"num_bits": 4}}},
            },
            "compressed-tensors 4-bit",
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "modelopt NVFP4"),
    ],
)
def test_a_quantisation_is_named(tmp_path: Path, method: dict[str, Any], label: str) -> None:
    assert read_checkpoint(checkpoint(tmp_path / "m", quantization_config=method)).quantization == label


def test_packed_weights_are_counted_as_weights(tmp_path: Path) -> None:
    table = {
        "l.qweight": {"dtype": "I32", "shape": [2, 8], "data_offsets": [0, 64]},
        "l.scales": {"dtype": "F16", "shape": [1, 8], "data_offsets": [64, 80]},
    }
    header = json.dumps(table).encode()
    weights = struct.pack("<Q", len(header)) + header + bytes(80)
    folder = checkpoint(tmp_path / "m", weights, quantization_config={"quant_method": "gptq", "bits": 4})
    assert read_checkpoint(folder).parameters == 2 * 8 * 8


def test_several_files_are_read_together_and_a_missing_one_is_named(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m")
    names = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    (folder / names[0]).write_bytes(tensors(a=(4,)))
    without_index = problem_of(folder)
    index = {"metadata": {"total_size": 16}, "weight_map": {"a": names[0], "b": names[1]}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    for error in (without_index, problem_of(folder)):
        assert error.reason is Reason.MODEL_FILE_MISSING
        assert names[1] in error.problem.message
        assert error.problem.evidence["missing"] == [names[1]]
    (folder / names[1]).write_bytes(tensors(b=(3, 2)))
    info = read_checkpoint(folder)
    assert info.parameters == 10
    assert [part.name for part in info.parts] == ["config.json", *names]


def test_an_index_alone_promises_its_files(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m")
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model.safetensors"}}')
    assert problem_of(folder).reason is Reason.MODEL_FILE_MISSING


@pytest.mark.parametrize("name", ["../../secret.safetensors", "/etc/passwd", "", ".."])
def test_an_index_cannot_point_out_of_its_folder(tmp_path: Path, name: str) -> None:
    folder = checkpoint(tmp_path / "m")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    assert problem_of(folder).reason is Reason.MODEL_FILE_DAMAGED


def test_a_folder_without_a_model_says_so_and_names_those_in_it(tmp_path: Path) -> None:
    problem = problem_of(tmp_path).problem
    assert (problem.reason, problem.evidence["holds"]) == (Reason.MODEL_FILE_MISSING, [])
    assert problem.message == f"There is no model in the folder {tmp_path}."
    checkpoint(tmp_path / "b small one")
    (tmp_path / "a.GGUF").touch()
    (tmp_path / "notes").mkdir()
    problem = problem_of(tmp_path).problem
    assert problem.evidence["holds"] == ["a.GGUF", "b small one"]
    assert "Models lie in it: a.GGUF, b small one." in problem.cause
    assert problem.fix is not None
    assert problem.fix.command == f"sndr run {tmp_path}/a.GGUF"


def test_weights_without_a_config_are_a_model_that_is_not_whole(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    assert "There is no config.json in" in problem_of(tmp_path).problem.message


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m")
    (folder / "pytorch_model.bin").write_bytes(b"PK\x03\x04")
    error = problem_of(folder)
    assert error.reason is Reason.UNSUPPORTED
    assert "pytorch_model.bin" in error.problem.message


def test_a_download_that_has_not_come_to_the_weights_is_no_shape(tmp_path: Path) -> None:
    model = tmp_path / "models--org--m"
    folder = checkpoint(model / "snapshots" / "abc")
    (model / "blobs").mkdir()
    (model / "blobs" / "f00.incomplete").write_bytes(b"")
    assert problem_of(folder).reason is Reason.MODEL_FILE_MISSING
    (model / "blobs" / "f00.incomplete").unlink()
    assert read_checkpoint(folder).shape


def test_an_embedding_model_is_known_by_its_pooling(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m")
    (folder / "modules.json").write_text("[]")
    assert read_checkpoint(folder).embedding_only
    assert read_checkpoint(checkpoint(tmp_path / "b", architectures=["BertModel"])).embedding_only


def test_side_files_that_are_broken_do_not_hide_the_model(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m")
    for name in ("tokenizer_config.json", "chat_template.json"):
        (folder / name).write_text("{")
    (folder / "chat_template.jinja").write_bytes(b"\xff\xfe")
    (folder / "README.md").write_text("---\nlicense:\n  - a\n---")
    info = read_checkpoint(folder)
    assert (info.chat_template, info.licence) == ("", None)


@pytest.mark.parametrize(
    "config", ["", "{", "[]", "[" * 100_000, '"text"'], ids=["empty", "open", "list", "nested", "text"]
)
def test_a_broken_config_is_named(tmp_path: Path, config: str) -> None:
    folder = checkpoint(tmp_path / "m")
    (folder / "config.json").write_text(config)
    error = problem_of(folder)
    assert error.reason is Reason.MODEL_FILE_DAMAGED
    assert "config.json" in error.problem.message


def test_a_config_of_nonsense_is_read_as_far_as_it_makes_sense(tmp_path: Path) -> None:
    folder = checkpoint(
        tmp_path / "m",
        architectures="x",
        hidden_size="wide",
        num_attention_heads=-1,
        layer_types=7,
        max_position_embeddings=True,
        text_config=[],
        quantization_config="none",
    )
    info = read_checkpoint(folder)
    assert (info.architecture, info.head_dim, info.context, info.layer_types) == ("qwen3", None, None, ())


def test_a_file_that_is_cut_short_says_how_much_is_missing(tmp_path: Path) -> None:
    whole = tensors(a=(4, 8))
    for length in (0, 5, 20, len(whole) - 1):
        error = problem_of(checkpoint(tmp_path / "m", whole[:length]))
        assert error.reason is Reason.MODEL_FILE_DAMAGED
        assert "truncated" in error.problem.message


@pytest.mark.parametrize(
    "content",
    [
        b"GGUF" + bytes(60),
        b"PK\x03\x04" + b"x" * 60,
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 9) + b'{"a": {}}',
        struct.pack("<Q", 1 << 62) + b"{}",
        struct.pack("<Q", 55) + b'{"a":{"dtype":"F16","shape":[-1],"data_offsets":[0,2]}}' + bytes(2),
        struct.pack("<Q", 54) + b'{"a":{"dtype":"F16","shape":[1],"data_offsets":[2,0]}}' + bytes(2),
    ],
)
def test_a_file_that_is_something_else_is_damaged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(HostError) as raised:
        read_shard(path)
    assert raised.value.reason is Reason.MODEL_FILE_DAMAGED


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200))
@example(content=b"")
def test_any_bytes_give_a_shard_or_a_problem(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.safetensors"
    for bytes_ in (content, struct.pack("<Q", len(content)) + content):
        path.write_bytes(bytes_)
        reason = Reason.MODEL_FILE_DAMAGED
        try:
            read_shard(path)
        except HostError as error:
            reason = error.reason
        assert reason is Reason.MODEL_FILE_DAMAGED


@pytest.mark.parametrize(
    "config",
    [
        {"num_hidden_layers": 2**40, "full_attention_interval": 4},
        {"num_hidden_layers": 10**400},
        {"layer_types": ["full_attention"] * 50_000},
        {"layer_types": [["a"], {}, 3]},
        {"architectures": [["a"], "b" * 5000, None]},
        {"quantization_config": {"quant_method": ["a" * 5000], "bits": "x"}},
        {"quantization_config": {"quant_method": "a" * 5000}},
        {"time_step_limit": [0.0, float("inf")]},
    ],
    ids=lambda config: str(config)[:40],
)
def test_no_config_makes_more_than_it_says(tmp_path: Path, config: dict[str, Any]) -> None:
    info = read_checkpoint(checkpoint(tmp_path, **config))
    assert len(repr(info)) < 40_000


def test_templates_in_odd_forms_are_none(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path)
    for written in (
        [{"name": ["a"], "template": "x"}],
        [{"name": "default", "template": {"a": 1}}],
        5,
        "x" * (2 << 20),
    ):
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": written}))
        assert read_checkpoint(folder).chat_template == ""


def test_nothing_in_a_folder_makes_it_wait(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path)
    for name in (
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
        "chat_template.json",
        "README.md",
    ):
        os.mkfifo(folder / name)
    assert read_checkpoint(folder).chat_template == ""
    os.mkfifo(folder / "model.safetensors.index.json.x")
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    assert problem_of(folder).reason is Reason.MODEL_FILE_MISSING


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [10**400], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [2] * 9, "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1], "data_offsets": [0, 0.5]},
        {"dtype": "F32", "shape": [1], "data_offsets": [0, 1e300]},
        {"dtype": ["F32"], "shape": [1], "data_offsets": [0, 4]},
        {"dtype": "F32" * 100, "shape": [1], "data_offsets": [0, 4]},
    ],
    ids=str,
)
def test_measures_that_no_tensor_has_are_refused(tmp_path: Path, entry: dict[str, Any]) -> None:
    table = json.dumps({"a": entry}).encode()
    folder = checkpoint(tmp_path, struct.pack("<Q", len(table)) + table + bytes(64))
    assert problem_of(folder).reason is Reason.MODEL_FILE_DAMAGED


def test_tables_that_nest_are_refused(tmp_path: Path) -> None:
    table = b"[" * 100_000
    folder = checkpoint(tmp_path, struct.pack("<Q", len(table)) + table)
    assert problem_of(folder).reason is Reason.MODEL_FILE_DAMAGED
