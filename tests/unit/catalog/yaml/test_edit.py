"""A value is changed where it stands: comments, order and every other line survive."""

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_host.catalog.yaml.edit import remove_value, set_value
from engine_host.catalog.yaml.file import dump, parse
from engine_host.core.errors import HostError
from engine_host.core.package_data import presets
from engine_host.protocol.errors import Reason

MINE = """\
# My own one.
format: 1
id: mine
title: Mine   # shown in the list
extends: demo-llamacpp

settings:
  # Enough for my editor.
  context: 4096  # tokens
  streams: 2

# The end.
"""


def put(text: str, path: str, value: Any) -> str:
    return set_value(text, tuple(path.split(".")), value, "mine.yaml")


def take(text: str, path: str) -> str:
    return remove_value(text, tuple(path.split(".")), "mine.yaml")


def test_changes_one_value_and_nothing_else() -> None:
    assert put(MINE, "settings.context", 8192) == MINE.replace("4096", "8192")
    assert put(MINE, "title", "Mine: at home") == MINE.replace("Mine   #", "'Mine: at home' #")


def test_adds_behind_the_last_key_of_its_table() -> None:
    text = put(MINE, "settings.eager", True)
    assert text == MINE.replace("  streams: 2\n", "  streams: 2\n  eager: true\n")


def test_adds_a_table_at_the_end() -> None:
    text = put(MINE.split("\nsettings")[0], "settings.context", 512)
    assert text.endswith("extends: demo-llamacpp\nsettings:\n  context: 512\n")


@pytest.mark.parametrize("empty", ["settings:", "settings: {}", "settings: null", "settings:  # none yet"])
def test_fills_an_empty_table(empty: str) -> None:
    text = put(f"id: mine\n{empty}\ntitle: Mine\n", "settings.context", 512)
    assert parse(text, "").data == {"id": "mine", "settings": {"context": 512}, "title": "Mine"}
    assert ("# none yet" in text) is ("# none yet" in empty)


def test_removes_the_line_and_a_table_that_is_left_empty() -> None:
    assert take(MINE, "settings.streams") == MINE.replace("  streams: 2\n", "")
    text = take(take(MINE, "settings.streams"), "settings.context")
    assert parse(text, "").data == {"format": 1, "id": "mine", "title": "Mine", "extends": "demo-llamacpp"}
    assert text.startswith("# My own one.")
    assert text.endswith("# The end.\n")


def test_a_key_that_is_not_there_is_removed_without_a_change() -> None:
    assert take(MINE, "settings.eager") == MINE
    assert take(MINE, "summary.of.nothing") == MINE


def test_tables_in_braces_stay_in_braces() -> None:
    text = "needs: {gpus: 1, vram_gib: 24}  # one\n"
    assert put(text, "needs.sm", "8.6") == "needs: {gpus: 1, vram_gib: 24, sm: '8.6'} # one\n"
    assert take(text, "needs.gpus") == "needs: {vram_gib: 24}           # one\n"
    assert take(text, "needs.vram_gib") == "needs: {gpus: 1}                # one\n"


def test_lists_and_long_texts_are_replaced_whole() -> None:
    text = "a:\n  - one\n  - two\n# below\nb: >\n  long\n  text\nc: 1\n"
    assert put(text, "a", ["x", "y, z"]) == "a: [x, 'y, z']\n# below\nb: >\n  long\n  text\nc: 1\n"
    assert put(text, "b", "short") == "a:\n  - one\n  - two\n# below\nb: >-\n  short\nc: 1\n"
    assert take(text, "b") == "a:\n  - one\n  - two\n# below\nc: 1\n"


def test_an_empty_text_begins_with_the_value() -> None:
    assert put("", "settings.context", 512) == "settings:\n  context: 512\n"
    assert put("# only words", "id", "mine") == "# only words\nid: mine\n"


def test_line_breaks_of_other_systems_stay() -> None:
    text = MINE.replace("\n", "\r\n")
    assert put(text, "settings.eager", False) == put(MINE, "settings.eager", False).replace("\n", "\r\n")


def test_a_text_that_is_no_yaml_is_refused_with_its_line() -> None:
    with pytest.raises(HostError) as caught:
        put("id: [mine\ntitle: x\n", "title", "y")
    assert caught.value.reason is Reason.PRESET_INVALID
    assert caught.value.problem.evidence["line"] == 2


def test_a_path_through_a_list_is_refused() -> None:
    with pytest.raises(HostError, match="does not hold keys"):
        put("a: [1]\n", "a.b", 1)


KEYS = st.sampled_from(["context", "streams", "a b", "x-y", "on"])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**9), 10**9),
    st.floats(-1e6, 1e6).map(lambda number: round(number, 3)),
    st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=90),
    st.sampled_from(["line\nbreak", "#no", "a: b", "- x", "'", '"', "{", "8.6", "null", "~", " x ", ""]),
    st.lists(st.sampled_from(["--flag", "a,b", "[x]", "8", ""]), max_size=3),
)
TABLES = st.dictionaries(KEYS, st.one_of(VALUES, st.dictionaries(KEYS, VALUES, min_size=1, max_size=3)))


@given(TABLES, KEYS, KEYS, VALUES)
def test_says_afterwards_what_was_meant(table: dict[str, Any], outer: str, key: str, value: Any) -> None:
    text = "# before\n" + dump(table) + "# after\n" if table else ""
    expected = copy.deepcopy(table)
    expected[outer] = value
    assert parse(set_value(text, (outer,), value, ""), "").data == expected
    if isinstance(table.get(outer), dict):
        inner = copy.deepcopy(table)
        inner[outer][key] = value
        assert parse(set_value(text, (outer, key), value, ""), "").data == inner


@pytest.mark.parametrize("path", sorted((presets() / "presets").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_preset_can_be_edited(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    changed = put(put(text, "settings.context", 4321), "card.status", "preview")
    kept = [line for line in text.splitlines() if line.lstrip().startswith("#")]
    assert [line for line in changed.splitlines() if line.lstrip().startswith("#")] == kept
    assert parse(take(changed, "settings.context"), "").data.get("settings", {}).get("context") is None


@pytest.mark.parametrize("path", sorted(presets().rglob("*.yaml")), ids=lambda path: path.stem)
def test_a_new_key_in_a_shipped_file_leaves_every_line_as_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    changed = put(text, "added", 1)
    assert changed.splitlines().count("added: 1") == 1
    assert changed.replace("added: 1\n", "") == text
    assert take(changed, "added") == text
