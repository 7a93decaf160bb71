"""A growing text is cut where its paragraphs and its code end, whatever the pieces it comes in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sndr_gui.models.chat.paragraphs import LONGEST, Code, CodeEnd, CodeStart, MarkdownStream, Piece, Prose


def whole(text: str, size: int = 10_000) -> list[Piece]:
    """The pieces of a text that has ended, code put together."""
    stream = MarkdownStream()
    found: list[Piece] = []
    for start in range(0, len(text), size):
        found += stream.feed(text[start : start + size])
    joined: list[Piece] = []
    for piece in [*found, *stream.finish()]:
        if isinstance(piece, Code) and joined and isinstance(joined[-1], Code):
            joined[-1] = Code(joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return joined


@pytest.mark.parametrize("size", [1, 3, 10_000])
@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("one\n\ntwo", [Prose("one"), Prose("two")]),
        ("```py\na\n\nb\n```\nrest", [CodeStart("py"), Code("a\n\nb"), CodeEnd(), Prose("rest")]),
        ("````md\n```\nx\n```\n````\n", [CodeStart("md"), Code("```\nx\n```"), CodeEnd()]),
        ("~~~\nnever closed", [CodeStart(""), Code("never closed"), CodeEnd()]),
        ("```a``` is code within a line", [Prose("```a``` is code within a line")]),
        ("- a\n\n- b\n\nafter\n\nmore", [Prose("- a\n\n- b\n"[:-1]), Prose("after"), Prose("more")]),
        ("```\n```\n\n\n", [CodeStart(""), CodeEnd()]),
    ],
)
def test_paragraphs_and_code_end_where_they_end(text: str, pieces: list[Piece], size: int) -> None:
    assert whole(text, size) == pieces


def test_what_has_not_ended_is_the_rest() -> None:
    stream = MarkdownStream()
    assert stream.feed("half a") == []
    assert stream.rest == "half a"
    stream.feed(" line\n```\ncode")
    assert stream.rest == "", "code goes out as it comes"


@given(st.text(alphabet="ab `~-1.\n", max_size=200), st.integers(1, 20))
def test_no_word_is_lost(text: str, size: int) -> None:
    told = "".join(
        piece.text for piece in whole(text, size) if isinstance(piece, Prose | Code)
    )  # fmt: skip
    assert (
        [letter for letter in told if letter in "ab1"] == [letter for letter in text if letter in "ab1"]
        or "```" in text
        or "~~~" in text
    )


def test_a_paragraph_without_end_is_cut_and_a_table_keeps_its_head() -> None:
    parts = [piece.text for piece in whole("word " * 2000, 7) if isinstance(piece, Prose)]
    assert all(len(part) <= LONGEST for part in parts)
    assert "".join(parts).split() == ["word"] * 2000
    head = "| name | size |\n|---|---|\n"
    rows = [f"| row {number} | {'x' * 40} |\n" for number in range(150)]
    tables = [piece.text for piece in whole(head + "".join(rows), 100) if isinstance(piece, Prose)]
    assert len(tables) > 1
    assert all(table.startswith(head) for table in tables)
    assert sum(table.count("| row") for table in tables) == 150
