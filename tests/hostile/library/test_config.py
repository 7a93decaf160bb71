"""Configs of strangers: config.json with its quantisation, the index, tokenizer files and templates."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from engine_host.fit.shapes.quantization import read_quantization
from engine_host.fit.shapes.read import model_of, model_of_config, windowed
from engine_host.library.checkpoint import CONFIG, INDEX, read_checkpoint, read_json
from tests.hostile.effort import cheap, clear, fuzz, linear
from tests.hostile.making import configs
from tests.hostile.making.text import HOSTILE, long_words, words
from tests.hostile.making.values import ABSURD, changed, nested, numbers, values, written
from tests.hostile.reports import computed

pytestmark = pytest.mark.fuzz
SOUND = configs.sound()


def use(config: Any) -> None:
    """Compute what a config says."""
    clear(lambda: windowed(config))
    for bits in (None, 4.5):
        model = clear(lambda bits=bits: model_of_config(config, "it", bits=bits))  # type: ignore[misc]
        if model is not None:
            computed(model)


def use_folder(folder: Path) -> None:
    """Read a checkpoint's folder, and compute with what it says."""
    info = clear(lambda: read_checkpoint(folder))
    if info is not None:
        assert len(repr(info)) < 4 << 20
        model = clear(lambda: model_of(info, "it"))
        if model is not None:
            computed(model)


def test_changed_configs(tmp_path: Path) -> None:
    def check(config: dict[str, Any]) -> None:
        (tmp_path / CONFIG).write_bytes(written(config))
        read = clear(lambda: read_json(tmp_path / CONFIG))
        if read is not None:
            use(read)
            use_folder(tmp_path)

    fuzz("config.json", st.sampled_from(SOUND).flatmap(changed), check, usual=2.0)


_names = st.one_of(words, long_words, st.sampled_from(["re:" + one for one in HOSTILE]))
_names = st.one_of(
    _names, st.sampled_from(["re:.*a.*b.*c.*d", "re:(a|a)*$", "re:(?!x)", "re:\\w{9999}", "re:((", "*" * 40])
)
_lists = st.one_of(st.lists(_names, max_size=6), values)
quantizations = st.fixed_dictionaries(
    {},
    optional={
        "quant_method": st.sampled_from([*(one["quant_method"] for one in configs.QUANTIZATIONS), "", 7]),
        "quant_algo": st.one_of(st.sampled_from(["NVFP4", "FP8"]), values),
        **dict.fromkeys(("bits", "w_bit", "group_size", "q_group_size"), numbers),
        **dict.fromkeys(("ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules"), _lists),
        "dynamic": st.one_of(st.dictionaries(_names, values, max_size=3), values),
        "extra_config": st.one_of(
            st.dictionaries(_names, st.dictionaries(st.just("bits"), numbers), max_size=3), values
        ),
        "weight_block_size": st.one_of(st.lists(numbers, max_size=3), values),
        "config_groups": st.one_of(
            values,
            st.dictionaries(
                words,
                st.fixed_dictionaries(
                    {},
                    optional={
                        "targets": _lists,
                        "format": values,
                        "weights": st.dictionaries(
                            st.sampled_from(
                                ["num_bits", "group_size", "strategy", "symmetric", "block_structure"]
                            ),
                            st.one_of(numbers, values),
                        ),
                    },
                ),
                max_size=3,
            ),
        ),
        "lm_head": values,
    },
)


def test_quantizations() -> None:
    shape = {name: value for name, value in SOUND[0].items() if name != "quantization_config"}

    def check(quantization: dict[str, Any]) -> None:
        config = json.loads(written({**shape, "quantization_config": quantization}))
        found = clear(lambda: read_quantization(config))
        if found is not None:
            bits = found.bits("layers.0.self_attn.q_proj")
            assert bits is None or 0 <= bits < 1e12
        use(config)

    fuzz("quantization_config", quantizations, check, usual=2.0)


COUNTS = (
    *("num_hidden_layers", "full_attention_interval", "num_nextn_predict_layers"),
    *("num_experts", "vocab_size", "hidden_size"),
)


@pytest.mark.parametrize("number", ABSURD, ids=lambda number: str(number)[:12])
def test_absurd_numbers_cost_nothing(tmp_path: Path, number: Any) -> None:
    config = {**SOUND[-1], **SOUND[0], "model_type": "qwen3", "layer_types": None}
    everywhere = {name: number for name, value in config.items() if isinstance(value, int)}
    for absurd in (everywhere, dict.fromkeys(COUNTS, number), *({name: number} for name in COUNTS)):
        (tmp_path / CONFIG).write_bytes(written({**config, **absurd}))
        cheap(lambda: use_folder(tmp_path))
    cheap(lambda: use(json.loads(written({**config, **everywhere}))))


def many() -> Iterator[tuple[str, Any]]:
    """Lists of modules that are longer than any."""
    yield "names", [f"model.layers.{n}.mlp" for n in range(100_000)]
    yield "patterns", [f"re:.*{n}.*x.*y" for n in range(20_000)]
    yield "stars", ["*a" * 200] * 50
    yield "slow patterns", ["re:(a+)+$", "re:(.*)*x", "re:(\\w+)+\\.", "re:" + "(.*" * 20 + ")" * 20]
    yield "counted patterns", ["re:\\w{50}{50}{50}", "re:(\\pL{1000}){1000}"]


@pytest.mark.parametrize(("kind", "names"), [*many()], ids=[kind for kind, _ in many()])
def test_lists_of_modules_cost_what_they_are_long(kind: str, names: list[str]) -> None:
    config = {**SOUND[0], "quantization_config": {"quant_method": "fp8", "ignored_layers": names}}
    cheap(lambda: clear(lambda: model_of_config(config, "it")), seconds=0.3 if kind == "names" else 0.1)


def test_depth_is_refused(tmp_path: Path) -> None:
    for kind in ("list", "object"):
        for name in ("chat_template.json", "tokenizer_config.json", INDEX, CONFIG):
            (tmp_path / CONFIG).write_bytes(written(SOUND[0]))
            (tmp_path / name).write_bytes(nested(kind, 100_000))
            cheap(lambda: use_folder(tmp_path))


PIECES = (b"[],", b"{},", b'"ab",', b"300,", b"1.5,", b'{"a":1},', b"9" * 4000 + b",")


@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: piece.decode()[:12])
def test_a_config_takes_50_mb_at_most_however_it_is_filled(tmp_path: Path, piece: bytes) -> None:
    def of(size: int) -> Any:
        (tmp_path / CONFIG).write_bytes(b'{"a":[' + piece * (size // len(piece)) + b"1]}")
        return lambda: clear(lambda: read_json(tmp_path / CONFIG))

    for size in (500_000, 8_000_000, 9_000_000):
        cheap(of(size), seconds=0.2)
    linear(of, 50_000)


def test_what_lies_beside_a_config(tmp_path: Path) -> None:
    """The index, the files of the tokenizer, templates and the card."""
    (tmp_path / CONFIG).write_bytes(written(SOUND[0]))
    table = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(table)) + table + bytes(4))
    sound: dict[str, dict[str, Any]] = {
        INDEX: {"metadata": {"total_size": 4}, "weight_map": {"a": "model.safetensors"}},
        "tokenizer_config.json": {
            "chat_template": [{"name": "default", "template": "x"}],
            "added_tokens_decoder": {"0": {"content": "<s>"}},
        },
        "chat_template.json": {"chat_template": "x"},
        "tokenizer.json": {"added_tokens": [{"content": "<fim_prefix>"}]},
    }
    one = st.sampled_from(sorted(sound)).flatmap(
        lambda name: st.tuples(
            st.just(name),
            st.one_of(changed(sound[name]).map(written), values.map(written), st.binary(max_size=80)),
        )
    )
    text = st.tuples(
        st.sampled_from(["chat_template.jinja", "README.md", "tokenizer.json", "modules.json"]),
        st.one_of(words, long_words).map(
            lambda said: f"---\nlicense: {said}\n---\n".encode("utf-8", "replace")
        ),
    )

    def check(made: tuple[str, bytes]) -> None:
        name, content = made
        (tmp_path / name).write_bytes(content)
        try:
            use_folder(tmp_path)
        finally:
            (tmp_path / name).unlink()

    fuzz("index, tokenizer, template, card", st.one_of(one, text), check)


def test_a_card_takes_time_by_its_length(tmp_path: Path) -> None:
    (tmp_path / CONFIG).write_bytes(written(SOUND[0]))
    for front in ("license: " + "a" * 60_000 + "!", "license:" + " " * 60_000 + "!", "license: a\n" * 5000):
        (tmp_path / "README.md").write_text(f"---\n{front}\n---\n")
        cheap(lambda: use_folder(tmp_path))
