"""Code is coloured a line at a time; what is open at the end of a line goes on in the next."""

import pytest

from sndr_gui.models.chat.code_colours import LONGEST_LINE, language_of, spans


def words(line: str, language: str, state: str = "") -> list[tuple[str, str]]:
    return [(line[start : start + length], kind) for start, length, kind in spans(line, language, state)[0]]


@pytest.mark.parametrize(
    ("named", "line", "found"),
    [
        (
            "py",
            'def f(x): return "a # b"  # say "it"',
            [("def", "keyword"), ("return", "keyword"), ('"a # b"', "string"), ('# say "it"', "comment")],
        ),
        ("JSON", '{"a": [true, "b"]}', [('"a"', "keyword"), ("true", "keyword"), ('"b"', "string")]),
        ("c++", "int 0x1F; /* y */", [("int", "keyword"), ("0x1F", "number"), ("/* y */", "comment")]),
        ("bash", "echo $HOME # x#y", [("echo", "keyword"), ("$HOME", "keyword"), ("# x#y", "comment")]),
        ("yaml", "- name: 'a'", [("- name", "keyword"), ("'a'", "string")]),
        ("SQL", "SELECT 1 -- one", [("SELECT", "keyword"), ("1", "number"), ("-- one", "comment")]),
        ("diff", "+new", [("+new", "added")]),
        ("brainfuck", "def", []),
        ("python", "x" * (LONGEST_LINE + 1), []),
    ],
)  # fmt: skip
def test_a_line_of_each_kind(named: str, line: str, found: list[tuple[str, str]]) -> None:
    assert words(line, language_of(named)) == found


def test_strings_and_comments_go_on_in_the_next_line() -> None:
    _, state = spans('x = """one', "python")
    assert spans("two", "python", state) == ([(0, 3, "string")], state)
    assert words('three""" + 1', "python", state) == [('three"""', "string"), ("1", "number")]
    _, state = spans("a /* b", "c")
    assert words("c */ return", "c", state) == [("c */", "comment"), ("return", "keyword")]


@pytest.mark.parametrize("sign", ['"', "\\", "#", "/*", "-", "[[", "a:", "<", "$", "`", "'''"])
def test_lines_that_were_written_to_take_long_do_not(sign: str) -> None:
    for language in ("python", "script", "rust", "shell", "json", "yaml", "toml", "css", "markup", "make"):
        spans((sign * LONGEST_LINE)[:LONGEST_LINE], language)
