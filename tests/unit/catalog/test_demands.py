"""A file asks for what is beyond harmless settings, thing by thing, and for nothing by its harmless ones."""

from pathlib import Path

import pytest
from pydantic import BaseModel

from engine_host.catalog.demands import HARMLESS, LOOKED_AT, demands
from engine_host.catalog.exchange import check_import, export
from engine_host.protocol.engine_settings.table import SETTINGS
from engine_host.protocol.launch.consents import Demand
from tests.shipped_catalog import shipped
from tests.unit.catalog.small import HARDWARE, MODEL, PRESET, PROFILE, VARIATION, Small


def asked(small: Small, name: str, text: str) -> list[Demand]:
    path = small.write_own(name, text)
    catalog = small.read()
    (one,) = (one for one in catalog.own() if one.path == path)
    return list(demands(one, catalog))


def varied(settings: str) -> str:
    return VARIATION.split("settings:")[0] + "settings:\n" + settings


@pytest.mark.parametrize("kind", HARMLESS, ids=lambda kind: kind.__name__)
def test_every_field_is_harmless_or_looked_at(kind: type[BaseModel]) -> None:
    fields = set(kind.model_fields)
    assert fields <= HARMLESS[kind] | LOOKED_AT, "a new field is shown until it is known to be harmless"
    assert HARMLESS[kind] <= fields
    assert not HARMLESS[kind] & LOOKED_AT


def test_raw_arguments_and_wrong_answers_are_never_harmless(small: Small) -> None:
    never = {name for name, row in SETTINGS.items() if not row.harmless}
    assert never == {"allow_wrong_answers", "extra_arguments", "variables"}
    (found,) = asked(small, "mine", varied("  allow_wrong_answers: true\n"))
    assert "known to be wrong" in found.does


@pytest.mark.parametrize(
    ("name", "value", "harmless"),
    [
        ("context", 4096, True),
        ("eager", True, True),
        ("gpu_memory", 0.5, True),
        ("kv_cache_dtype", "turboquant_k8v4", True),
        ("speculation", "ngram-simple,draft-mtp", True),
        ("speculation", '{"method": "custom_class", "model": "x"}', False),
        ("tool_parser", "qwen3_xml", True),
        ("tool_parser", "/tmp/x.py", False),
        ("tool_parser", "--trust-remote-code", False),
        ("reasoning_parser", "a b", False),
        ("dtype", "../x", False),
        ("extra_arguments", ("--seed", "1"), False),
    ],
)
def test_numbers_and_plain_words_are_harmless(name: str, value: object, harmless: bool) -> None:
    assert SETTINGS[name].is_harmless(value) is harmless


def test_harmless_settings_ask_for_nothing(small: Small) -> None:
    text = "  context: 4096\n  streams: 2\n  eager: true\n  kv_cache_dtype: fp8\n"
    assert asked(small, "mine", varied(text)) == []
    assert asked(small, "profiles/quick", PROFILE.replace("id: latency", "id: quick")) == []


def test_variables_are_asked_for_one_by_one_with_their_lines(small: Small) -> None:
    table = """  variables:
    LD_PRELOAD: /tmp/x.so
    VLLM_USE_DEEP_GEMM: 0
    MADE_UP: a b
"""
    words = "  variables: [LD_PRELOAD=/tmp/x.so, VLLM_USE_DEEP_GEMM=0, 'MADE_UP=a b']\n"
    for text in (table, words):
        found = asked(small, "mine", varied(text))
        assert [one.what for one in found] == ["LD_PRELOAD=/tmp/x.so", "VLLM_USE_DEEP_GEMM=0", "MADE_UP=a b"]
        assert [one.known for one in found] == [True, True, False]
        assert "run somebody's code" in found[0].does
    keys = [one.key for one in asked(small, "mine", varied(table))]
    assert keys == [f"settings.variables.{name}" for name in ("LD_PRELOAD", "VLLM_USE_DEEP_GEMM", "MADE_UP")]
    lines = [one.line for one in asked(small, "mine", varied(table))]
    assert [line - (lines[0] or 0) for line in lines if line] == [0, 1, 2]


def test_arguments_are_asked_for_flag_by_flag_with_their_lines(small: Small) -> None:
    words = """  extra_arguments:
    - --trust-remote-code
    - --made_up
    - 'two words'
    - --tool_parser_plugin=/tmp/x.py
"""
    found = asked(small, "mine", varied(words))
    assert [one.what for one in found] == [
        "--trust-remote-code",
        "--made_up 'two words'",
        "--tool_parser_plugin=/tmp/x.py",
    ]
    assert [one.known for one in found] == [True, False, True]
    assert "does not know this flag" in found[1].does
    assert found[0].key == "settings.extra_arguments[0]"
    assert [one.line for one in found] == [7, 8, 10]


def test_words_without_a_flag_are_asked_for_too(small: Small) -> None:
    (found,) = asked(small, "mine", varied("  extra_arguments: [evil/model]\n"))
    assert (found.what, found.known) == ("evil/model", False)


def test_every_layer_is_looked_at(small: Small) -> None:
    profile = PROFILE.replace("id: latency", "id: quick").replace(
        "batched_tokens: 2048", "extra_arguments: [--trust-remote-code]"
    )
    assert [one.what for one in asked(small, "profiles/quick", profile)] == ["--trust-remote-code"]
    hardware = HARDWARE.replace("id: card", "id: other").replace("A Card", "Another Card")
    (found,) = asked(small, "hardware/other", hardware)
    assert found.key == "settings.vllm.extra_arguments[0]"
    model = MODEL.replace("id: small\n", "id: tiny\n").replace(
        "        gpu_layers: 99\n", "        extra_arguments: [--tools, all]\n"
    )
    found = next(one for one in asked(small, "models/tiny", model) if one.what == "--tools all")
    assert (found.key, "shell commands" in found.does) == (
        "variants[1].settings.llama.cpp.extra_arguments[0]",
        True,
    )


def test_repositories_that_the_program_does_not_name_are_asked_for(small: Small) -> None:
    model = MODEL.replace("id: small\n", "id: tiny\n")
    assert asked(small, "models/tiny", model) == [], "the program's own model names the same"
    revision = f"    repository: somebody/small\n    revision: {'a' * 40}\n"
    moved = model.replace("    repository: somebody/small\n", revision, 1)
    (found,) = asked(small, "models/tiny", moved)
    assert found.what == f"somebody/small@{'a' * 40}", "a version can be anybody's proposal"
    other = model.replace("somebody/small-gguf", "nobody/small").replace(
        "licence: Apache-2.0", "licence: MIT"
    )
    drafter = "drafters:\n  - id: d\n    method: draft\n    repository: nobody/draft\nvariants:\n"
    found_all = asked(small, "models/tiny", other.replace("variants:\n", drafter))
    assert [one.what for one in found_all] == ["nobody/draft", "nobody/small"]
    bundled = model.replace("repository: somebody/small-gguf", "bundled: models/x.gguf")
    assert [one.key for one in asked(small, "models/tiny", bundled)] == ["variants[1].bundled"]


def test_patches_and_objects_are_asked_for(small: Small) -> None:
    text = varied('  speculation: \'{"method": "custom_class"}\'\n') + "patches:\n  off: [all]\n"
    assert [(one.key, one.what) for one in asked(small, "mine", text)] == [
        ("settings.speculation", '{"method": "custom_class"}'),
        ("patches", "off: all"),
    ]


def test_an_import_asks_for_what_it_would_write(small: Small) -> None:
    own = PRESET.replace("small-one", "tiny-one").replace("[--from-preset]", "[--trust-remote-code]")
    small.write_own("tiny-one", own)
    text = export(small.read(), "tiny-one")
    (small.own / "tiny-one.yaml").unlink()
    found = check_import(small.read(), text, small.place)
    (demand,) = found.demands
    assert (demand.file, demand.key) == ("the imported file", "preset.settings.extra_arguments[0]")
    assert demand.line is not None
    assert "--trust-remote-code" in text.splitlines()[demand.line - 1]


def test_most_presets_of_the_program_ask_for_what_is_known(tmp_path: Path) -> None:
    """What ships says nothing that would be shown as not known, should somebody export it."""
    catalog = shipped()
    for kind in (catalog.presets, catalog.models, catalog.profiles, catalog.hardware, catalog.engines):
        for one in kind.values():
            assert all(demand.known for demand in demands(one, catalog)), one.file
