"""The quick reader reads as the thorough one does, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_host.catalog.yaml.file import parse
from engine_host.catalog.yaml.nodes import parse_nodes
from engine_host.catalog.yaml.plain import parse_plain
from engine_host.core.errors import HostError
from engine_host.core.package_data import presets

SHIPPED = sorted(presets().rglob("*.yaml"))
PARTS = (
    *(
        "a",
        "b: ",
        "c:",
        "- ",
        "-",
        "\n",
        "\n  ",
        "\n    ",
        " ",
        ":",
        "? ",
        "?",
        ", ",
        ",",
        "[",
        "]",
        "{",
        "}",
    ),
    *("'", '"', "#", " #", "|", "|-", ">", ">2", "\\n", "\\", "\\/", "1", "1.5", "~", "true", "é", "\xa0"),
    *("\x85", "\u2028", "\ufeff", "\t", "\r", "&a ", "*a", "!t ", "%", "---", "...", "<<: ", "\n- a"),
    *("\nb: 1", "{a: [b, c]}"),
)


def same(text: str) -> bool:
    """Return the quick reader's having read a text, which must be what the thorough one reads."""
    quick = parse_plain(text)
    if quick is None:
        return False
    try:
        thorough = parse_nodes(text, "f")
    except HostError as error:
        raise AssertionError(f"{text!r} is refused, and read as {quick.data}") from error
    # As text, so that True is not 1.
    assert repr(quick.data) == repr(thorough.data)
    assert quick.lines == thorough.lines
    return True


def test_shipped_files_are_read_by_it() -> None:
    # All of them: one that is left to the other reader costs every host its library, 2 MB.
    assert [path for path in SHIPPED if not same(path.read_text(encoding="utf-8"))] == []


@given(st.lists(st.sampled_from(PARTS), max_size=14).map("".join))
def test_it_reads_the_same_or_nothing(text: str) -> None:
    same(text)
    same(f"k: {text}")


@pytest.mark.parametrize(
    "text",
    [
        *("", "word\n", "- a\n", "# nothing\n", "a: 1\na: 2\n", "a: &x 1\n", "b: *x\n", "a: !!str 1\n"),
        *("? [a]\n: 1\n", "a: [1\n", "a:\n\tb: 1\n", "a: 1\n---\nb: 2\n", "%YAML 1.1\n---\na: 1\n"),
        *("a: 1\n...\n", "a: |-#x\n", "a: |-\n\n    b\n", "a: x\x85b: y\n", "a: 'x\u2028y'\n"),
        *("a: 1\r\nb: 2\r\n", "\ufeffa: 1\n", "a: 123456789012345678901\n", "a: 1e999\n"),
        f"a: {'[' * 20}{']' * 20}\n",
    ],
)
def test_what_may_be_read_otherwise_is_left(text: str) -> None:
    assert parse_plain(text) is None


@pytest.mark.parametrize(
    "text",
    [
        f"b: 1\na: [{'1,' * 20_000}]\n",
        "".join(f"k{n}:\n  - a: 1\n" for n in range(6000)),
        "a:\n" + "- []\n" * 30_000,
    ],
)
def test_too_many_values_are_refused_in_the_same_words_without_the_slow_reader(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(HostError) as thorough:
        parse_nodes(text, "f")
    monkeypatch.setattr("engine_host.catalog.yaml.nodes.parse_nodes", pytest.fail)
    with pytest.raises(HostError, match="more values than any such file") as quick:
        parse(text, "f")
    assert quick.value.problem == thorough.value.problem


def test_without_libyaml_the_other_reader_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yaml.__with_libyaml__", False)
    assert parse_plain("a: 1\n") is None
