"""Faults of a file are reported with their line, and never hide valid entries."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine_host.catalog.resolve import TargetHardware, resolve
from engine_host.protocol.base import Severity
from engine_host.protocol.presets import CatalogFault
from tests.unit.catalog.small import HARDWARE, MODEL, PRESET, PROFILE, VARIATION, Small


def only(small: Small) -> CatalogFault:
    faults = small.read().faults
    assert len(faults) == 1, faults
    return faults[0]


def test_a_right_catalogue_has_no_faults(small: Small) -> None:
    small.write_own("mine", VARIATION)
    catalog = small.read()
    assert catalog.faults == ()
    assert catalog.ids() == ("mine", "small-one")


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "says", "fix"),
    [
        (
            "  context: 16384",
            "  contxt: 16384",
            14,
            "settings.contxt",
            "no such key",
            "Did you mean context?",
        ),
        ("audience: tests", "audience: tests\n  colour: red", 20, "card.colour", "no such key", "Known here"),
        (
            "  context: 16384",
            "  context: many",
            14,
            "settings.context",
            "a whole number from 128 to",
            "Correct",
        ),
        (
            "  context: 16384",
            "  context: '16384'",
            14,
            "settings.context",
            "a whole number from 128 to",
            "Correct",
        ),
        (
            "  context: 16384",
            "  context: 8",
            14,
            "settings.context",
            "from 128 to",
            "Correct",
        ),
        ("profile: latency\n", "", None, "profile", "missing", "Add it"),
        ("id: small-one", "id: Small One", 2, "id", "matches", "Correct"),
        ("format: 1", "format: 2", 1, "format", "it takes 1", "Correct"),
        ("engine: vllm", "engine: vlm", 7, "engine", "llama.cpp, vllm or sglang", "Correct"),
        ("status: computed", "status: perfect", 17, "card.status", "verified, reported", "Correct"),
        ("  gpus: 1", "  gpus: 9", 10, "needs.gpus", "from 0 to 8", "Correct"),
        ("title: Small on one card", "title: ''", 3, "title", "not empty", "Correct"),
        ("summary: A test.", "summary: [A test.]", 4, "summary", "it takes text", "Correct"),
        ("engine: vllm", "engine: vllm\nengine: vllm", 8, "engine", "there already", "Remove one"),
    ],
)
def test_a_wrong_key_or_value_names_its_line(
    small: Small, old: str, new: str, line: int | None, key: str, says: str, fix: str
) -> None:
    small.write("presets/small-one", PRESET.replace(old, new))
    small.write("presets/another", PRESET.replace("small-one", "another"))
    fault = only(small)
    assert (fault.file, fault.severity) == ("shipped/presets/small-one.yaml", Severity.ERROR)
    assert (fault.line, fault.key) == (line, key)
    assert says in fault.message
    assert fix in fault.fix
    assert small.read().ids() == ("another",)


@pytest.mark.parametrize(
    ("old", "new", "key", "says"),
    [
        ("model: small", "model: large", "model", "there is no model large"),
        ("variant: bf16", "variant: fp8", "variant", "small has no variant fp8"),
        ("variant: bf16", "variant: q4", "engine", "vllm does not read gguf"),
        ("profile: latency", "profile: speed", "profile", "there is no profile speed"),
        ("engine: vllm", "engine: sglang", "engine", "nothing is known of the engine sglang"),
        ("profile: latency", "profile: latency\ndrafter: quick", "drafter", "small has no drafter quick"),
        (
            "  context: 16384",
            "  tensor_parallel: 2",
            "settings.tensor_parallel",
            "it needs 1 GPUs and uses 2",
        ),
        ("  caveats: [Nothing was measured.]\n", "", "card.caveats", "needs caveats"),
        ("status: computed", "status: verified", "card.status", "evidence that this project made"),
        ("status: computed", "status: reported", "card.status", "reported needs evidence"),
        ("status: computed", "status: deprecated", "card.fallback", "says what to use instead"),
        ("  gpus: 1", "  gpus: 0", "needs.gpus", "no GPU, but VRAM"),
        (
            "  context: 16384",
            "  gpu_memory: 0.9\n  kv_cache_gib: 4",
            "settings.kv_cache_gib",
            "the same thing",
        ),
        ("good_for: [chat]", "good_for: [chat]\n  fallback: small-one", "card.fallback", "it names itself"),
    ],
)
def test_entries_that_do_not_fit_together_are_out(
    small: Small, old: str, new: str, key: str, says: str
) -> None:
    small.write("presets/small-one", PRESET.replace(old, new))
    fault = only(small)
    assert fault.key == key
    assert says in fault.message
    assert fault.severity is Severity.ERROR
    assert small.read().ids() == ()


@pytest.mark.parametrize(
    ("old", "new", "key", "says"),
    [
        ("good_for: [chat]", "good_for: [chat]\n  fallback: gone", "card.fallback", "no usable preset gone"),
        ("  gpus: 1", "  gpus: 1\n  known_good: [a100]", "needs.known_good[0]", "no usable hardware a100"),
    ],
)
def test_a_pointer_to_something_unusable_hides_nothing(
    small: Small, old: str, new: str, key: str, says: str
) -> None:
    small.write("presets/small-one", PRESET.replace(old, new))
    fault = only(small)
    assert (fault.key, fault.severity) == (key, Severity.WARNING)
    assert says in fault.message
    assert small.read().ids() == ("small-one",)


def test_fallbacks_in_a_circle_are_told(small: Small) -> None:
    small.write(
        "presets/small-one", PRESET.replace("good_for: [chat]", "good_for: [chat]\n  fallback: other")
    )
    other = PRESET.replace("small-one", "other").replace(
        "good_for: [chat]", "good_for: [chat]\n  fallback: small-one"
    )
    small.write("presets/other", other)
    faults = small.read().faults
    assert {fault.message for fault in faults} == {"its fallbacks lead back to it"}
    assert small.read().ids() == ("other", "small-one")


def test_a_bad_model_takes_its_presets_along_and_nothing_else(small: Small) -> None:
    small.write("models/good", MODEL.replace("id: small\n", "id: good\n"))
    small.write(
        "presets/good-one", PRESET.replace("small-one", "good-one").replace("model: small", "model: good")
    )
    small.write("models/small", MODEL.replace("context: 32768", "context: 65536"))
    small.write_own("mine", VARIATION)
    catalog = small.read()
    assert catalog.ids() == ("good-one",)
    assert [(fault.file, fault.key) for fault in catalog.faults] == [
        ("own/mine.yaml", "extends"),
        ("shipped/models/small.yaml", "context"),
        ("shipped/presets/small-one.yaml", "model"),
    ]


@pytest.mark.parametrize(
    ("kind", "text", "old", "new", "says"),
    [
        ("models/small", MODEL, "  - id: q4", "  - id: bf16", "this id is there already"),
        (
            "models/small",
            MODEL,
            "repository: somebody/small\n",
            "quantization: x\n",
            "this key is there already",
        ),
        ("models/small", MODEL, "    repository: somebody/small\n", "", "either a repository or a place"),
        ("hardware/card", HARDWARE, "sm: '8.6'", "sm: 8.6", "it takes text"),
        ("hardware/card", HARDWARE, "how: published", "how: guessed", "published, measured"),
        ("hardware/card", HARDWARE, "nvlink: false", "nvlink: true", "should be False"),
        ("profiles/latency", PROFILE, "  any:", "  every:", "'any'"),
        ("profiles/latency", PROFILE, "good_for: [chat]", "good_for: []", "at least 1 item"),
    ],
)
def test_wrong_entries_of_each_kind(
    small: Small, kind: str, text: str, old: str, new: str, says: str
) -> None:
    assert old in text
    small.write(kind, text.replace(old, new, 1))
    faults = [fault for fault in small.read().faults if fault.file == f"shipped/{kind}.yaml"]
    assert any(says in fault.message for fault in faults), faults


def test_a_limit_has_to_be_one(small: Small) -> None:
    limit = "limits:\n  - {setting: contxt, at_most: 1, because: so}\n  - {setting: context, because: so}\n"
    small.write("profiles/latency", PROFILE + limit)
    said = [fault.message for fault in small.read().faults if "profiles" in fault.file]
    assert any("there is no setting contxt" in message for message in said)
    assert any("a limit needs at_most" in message for message in said)


def test_an_id_is_given_once(small: Small) -> None:
    small.write_own("small-one", PRESET.replace("A test.", "Mine."))
    fault = only(small)
    assert fault.file == "own/small-one.yaml"
    assert "shipped/presets/small-one.yaml has this id already" in fault.message
    assert "extends" in fault.fix
    assert small.read().preset("small-one").summary == "A test."


def test_a_variation_extends_a_preset_and_no_other_variation(small: Small) -> None:
    small.write_own("mine", VARIATION)
    small.write_own("deeper", VARIATION.replace("id: mine", "id: deeper").replace("small-one", "mine"))
    fault = only(small)
    assert fault.message == "mine is a variation itself"
    small.write_own("deeper", VARIATION.replace("id: mine", "id: deeper").replace("small-one", "gone"))
    assert only(small).message == "there is no preset gone"
    small.write_own("deeper", VARIATION.replace("id: mine", "id: deeper").replace("small-one", "smal-one"))
    assert only(small).fix == "Did you mean small-one?"
    small.write_own("deeper", VARIATION.replace("id: mine", "id: deeper") + "variant: q4\n")
    assert only(small).message == "vllm does not read gguf"


def test_files_that_are_no_catalogue_are_left_alone_and_broken_ones_told(small: Small) -> None:
    small.write_own("mine", VARIATION)
    (small.own / "notes.txt").write_text("hello")
    (small.own / ".hidden.yaml").write_text("[")
    (small.own / "folder.yaml").mkdir()
    (small.own / "picture.yaml").write_bytes(b"\x89PNG\r\n\xff")
    os.symlink(small.own / "gone", small.own / "dangling.yaml")
    fault = only(small)
    assert (fault.file, fault.message) == ("own/picture.yaml", "it is not UTF-8 text")
    assert small.read().ids() == ("mine", "small-one")


def test_a_changed_file_is_read_anew_and_another_is_not(small: Small, tmp_path: Path) -> None:
    path = small.write_own("mine", VARIATION)
    os.utime(small.shipped / "models" / "small.yaml", (1, 1))
    before = small.read()
    for context in (5120, 6144, 7168):
        path.write_text(VARIATION.replace("4096", str(context)), encoding="utf-8")
        after = small.read()
        assert after.variations["mine"].entry.settings.context == context
    assert after.models["small"] is before.models["small"]
    path.unlink()
    assert small.read().ids() == ("small-one",)


def test_a_folder_that_cannot_be_read_is_told(small: Small) -> None:
    os.symlink(small.own / "models", (small.write_own("mine", VARIATION)).parent / "models")
    fault = only(small)
    assert fault.file == "own/models"
    assert "cannot be read" in fault.message
    assert small.read().ids() == ("mine", "small-one")


_LINES = PRESET.strip().splitlines()
_JUNK = (
    "",
    "  ",
    "- x",
    "a: b",
    "  - [",
    "settings: 3",
    "needs: ~",
    "card: []",
    "x: {y: [1, {z: 2}]}",
    "'",
    "\t",
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(
    st.lists(st.tuples(st.integers(0, len(_LINES)), st.sampled_from((*_JUNK, *_LINES))), max_size=3),
    st.data(),
)
def test_no_text_breaks_the_reader(small: Small, changes: list[tuple[int, str]], data: st.DataObject) -> None:
    lines = list(_LINES)
    for place, line in changes:
        if data.draw(st.booleans()):
            lines.insert(place, line)
        elif place < len(lines):
            lines[place] = line
    small.write_own("spoilt", "\n".join(lines).replace("small-one", "spoilt"))
    small.write_own("good", VARIATION.replace("id: mine", "id: good"))
    catalog = small.read()
    assert {"small-one", "good"} <= set(catalog.ids())
    if "spoilt" in catalog.ids():
        resolve(catalog, "spoilt", TargetHardware("card"))
    else:
        assert all(fault.message for fault in catalog.faults)
        assert catalog.faults


@pytest.mark.parametrize(
    ("name", "text", "key"),
    [
        ("presets/small-one", PRESET.replace("  context: 16384", "  kv_type_k: q8_0"), "settings.kv_type_k"),
        (
            "profiles/latency",
            PROFILE.replace("batched_tokens: 2048", "flash_attention: auto"),
            "settings.vllm.flash_attention",
        ),
    ],
)
def test_a_setting_of_another_engine_is_a_fault(small: Small, name: str, text: str, key: str) -> None:
    small.write(name, text)
    fault = next(fault for fault in small.read().faults if fault.key == key)
    assert fault.severity is Severity.ERROR
    assert fault.message == "vllm has no such setting"


def test_what_is_meant_for_any_engine_may_be_nothing_to_one(small: Small) -> None:
    small.write(
        "profiles/latency", PROFILE.replace("    streams: 2", "    flash_attention: auto\n    threads: 3")
    )
    catalog = small.read()
    assert not catalog.faults
    assert {setting.name for setting in resolve(catalog, "small-one").settings}.isdisjoint(
        {"flash_attention", "threads"}
    )


def test_a_variation_cannot_have_a_setting_of_another_engine(small: Small) -> None:
    small.write_own("mine", VARIATION.replace("context: 4096", "gpu_layers: 3"))
    assert [fault.key for fault in small.read().faults] == ["settings.gpu_layers"]
