"""The YAML that the catalogue takes: plain values with their lines, and nothing else."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_host.catalog.document import dotted
from engine_host.catalog.yaml.file import MAX_BYTES, dump, parse, read
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason


def test_scalars_are_those_of_yaml_1_2() -> None:
    text = "a: no\nb: 012\nc: 1_0\nd: 1e3\ne: ~\nf: 'off'\ng: 2026-01-01\nh: true\ni: .5\nj: 1:30\nk: 0x10\n"
    assert parse(text, "f").data == {
        "a": "no",
        "b": 12,
        "c": "1_0",
        "d": 1000.0,
        "e": None,
        "f": "off",
        "g": "2026-01-01",
        "h": True,
        "i": 0.5,
        "j": "1:30",
        "k": "0x10",
    }


def test_every_key_and_item_has_its_line() -> None:
    document = parse("# a file\na: 1\nb:\n  - c: 2\n    d: 3\n  - [4,\n     5]\n", "f")
    assert document.line(("a",)) == 2
    assert document.line(("b", 0, "d")) == 5
    assert document.line(("b", 1, 1)) == 7
    assert document.line(("b", 0, "missing")) == 4
    assert document.line(("nothing",)) is None


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "this key is there already"),
        ("a: &x 1\nb: *x\n", 1, "anchors and aliases"),
        ("a:\n  b: *x\n", 2, "anchors and aliases"),
        ("a: !!python/object/apply:os.system [x]\n", 1, "tags"),
        ("a: [1, 2\n", 2, "expected"),
        ("a:\n\tb: 1\n", 2, "cannot start any token"),
        ("- a\n", 1, "keys and values"),
        ("word\n", 1, "keys and values"),
        ("? [a]\n: 1\n", 1, "a key must be a word"),
        ("a: 1\n---\nb: 2\n", 2, "another document"),
        ("", 1, "empty"),
        ("# nothing\n", 1, "empty"),
        ("a: 123456789012345678901\n", 1, "too large"),
        ("a: 1e999\n", 1, "too large"),
        (f"a: {'[' * 40}{']' * 40}\n", 1, "nested too deeply"),
        (f"a: {'{b: ' * 2000}1{'}' * 2000}\n", 1, "nested too deeply"),
    ],
)
def test_a_bad_text_is_refused_with_its_line(text: str, line: int, says: str) -> None:
    with pytest.raises(HostError) as caught:
        parse(text, "the/file.yaml")
    problem = caught.value.problem
    assert problem.reason is Reason.PRESET_INVALID
    assert says in problem.message
    assert problem.message.startswith(f"the/file.yaml, line {line}:")
    assert problem.evidence["line"] == line


def test_a_control_character_is_refused() -> None:
    with pytest.raises(HostError, match="not YAML"):
        parse("a: \x00\n", "f")


def test_files_that_are_no_text_or_not_there_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    with pytest.raises(HostError, match="cannot be read"):
        read(path, "f")
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(HostError, match=r"line 2: it is not UTF-8"):
        read(path, "f")
    path.write_bytes(b"a: " + b"x" * MAX_BYTES)
    with pytest.raises(HostError, match="larger than any such file"):
        read(path, "f")
    path.write_bytes("\ufeffa: 1\r\n".encode())
    assert read(path, "f").data == {"a": 1}


_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**15), 10**15)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\x85\u2028\u2029\ufeff")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text("abcdefgh", min_size=1), _VALUES, min_size=1, max_size=4))
def test_what_is_dumped_is_read_back(values: dict[str, Any]) -> None:
    assert parse(dump(values), "f").data == values


@pytest.mark.parametrize(
    "word", ["no", "null", "1", "1e3", "12e3", "~", "true", " x ", "a: b", "a\nb", "#x", ""]
)
def test_words_that_look_like_something_else_stay_words(word: str) -> None:
    assert parse(dump({"a": word, "b": [word]}), "f").data == {"a": word, "b": [word]}


def test_paths_are_written_as_people_do() -> None:
    assert dotted(("card", "evidence", 0, "pin")) == "card.evidence[0].pin"
    assert dotted(()) == ""


@pytest.mark.parametrize(
    "sign", ["\x85", "\u2028", "\u2029", "\x0b", "\x00", "\x1b", "\ufeff", "\r", "\n", "\t", "\x7f"]
)
def test_signs_that_end_a_line_for_some_come_back(sign: str) -> None:
    data = {"a": f"x{sign}y", f"k{sign}": [sign, f" {sign} "], "b": {"c": f"{sign}"}}
    assert parse(dump(data), "f").data == data
