"""Tables at the widths of terminals: whole, with folded cells, with a column below, or a row as a list."""

import io
import os
import shutil
import sys

import pytest

from engine_host.cli.text import tables
from engine_host.cli.text.tables import pairs, paragraph, room, table, width

HEADINGS = ("preset", "verdict", "memory, all streams", "decode, ≤", "measured", "why")
ROWS = [
    ("qwen3.6-27b-fp8-2x24", "tight", "22.9 GiB of 23.1 GiB", "214 tok/s", "", "Not at its upper end."),
    ("gpt-oss-20b-24", "fits", "13.0 GiB of 24.0 GiB", "337 tok/s", "", ""),
]


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


def at(columns: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    return table(HEADINGS, ROWS)


def test_columns_line_up() -> None:
    assert table(("a", "b"), [("long", "x"), ("", "yy")]) == ["a     b", "long  x", "      yy"]


def test_another_program_reads_a_row_in_a_line() -> None:
    lines = table(HEADINGS, [*ROWS, ("p", "fits", "", "", "", "why " * 100)])
    assert len(lines) == 4
    assert room() is None


def test_cells_are_folded_where_the_terminal_is_narrower(monkeypatch: pytest.MonkeyPatch) -> None:
    assert at(86, monkeypatch) == [
        "preset                verdict  memory, all streams   decode, ≤  why",
        "qwen3.6-27b-fp8-2x24  tight    22.9 GiB of 23.1 GiB  214 tok/s  Not at its upper end.",
        "gpt-oss-20b-24        fits     13.0 GiB of 24.0 GiB  337 tok/s",
    ]
    assert at(72, monkeypatch) == [
        "preset                verdict  memory, all     decode, ≤  why",
        "                               streams",
        "qwen3.6-27b-fp8-2x24  tight    22.9 GiB of     214 tok/s  Not at its",
        "                               23.1 GiB                   upper end.",
        "gpt-oss-20b-24        fits     13.0 GiB of     337 tok/s",
        "                               24.0 GiB",
    ]


def test_a_reason_stands_below_its_row_where_it_would_make_it_tall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    rows = [("one", "tight", "22.9 GiB", "214 tok/s", "word " * 20), ("two", "fits", "1 GiB", "9 tok/s", "")]
    assert table(("preset", "verdict", "memory", "decode, ≤", "why"), rows) == [
        "preset  verdict  memory    decode, ≤",
        "one     tight    22.9 GiB  214 tok/s",
        "    why: word word word word word word word word word word",
        "    word word word word word word word word word word",
        "two     fits     1 GiB     9 tok/s",
    ]


def test_a_remark_without_a_heading_stands_below_its_row_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("TTFT", "132 ms", "2", ""), ("prefill", "n/a", "2", "word " * 20)]
    monkeypatch.setenv("COLUMNS", "40")
    assert table(("", "median", "n", ""), rows)[2:] == [
        "prefill  n/a     2",
        *["    word word word word word word word"] * 2,
        "    word word word word word word",
    ]
    monkeypatch.setenv("COLUMNS", "16")
    assert table(("", "median", "n", ""), rows)[-2:] == ["    word word", "    word"]


def test_a_row_is_a_list_of_what_it_says_where_nothing_else_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    assert at(40, monkeypatch) == [
        "qwen3.6-27b-fp8-2x24",
        "  verdict: tight",
        "  memory, all streams: 22.9 GiB of 23.1",
        "    GiB",
        "  decode, ≤: 214 tok/s",
        "  why: Not at its upper end.",
        "gpt-oss-20b-24",
        "  verdict: fits",
        "  memory, all streams: 13.0 GiB of 24.0",
        "    GiB",
        "  decode, ≤: 337 tok/s",
    ]


@pytest.mark.parametrize("columns", range(24, 140))
def test_nothing_is_lost_or_wider_than_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = at(columns, monkeypatch)
    assert max(map(width, lines)) <= columns
    words = " ".join(lines).split()
    for row in ROWS:
        assert all(word in words for cell in row for word in cell.split())


def test_a_command_is_never_torn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    add = "sndr host add workshop you@workshop.example"
    assert add in "\n".join(table(("host", "add it with"), [("workshop", add)]))
    assert f"do:  $ {add}" in pairs([("do:", f"$ {add}")])


def test_names_and_values_go_on_below_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("endpoint", "http://127.0.0.1:8020/v1 (this machine only)"), ("GPU", "none")]
    monkeypatch.setenv("COLUMNS", "40")
    assert pairs(rows) == [
        "endpoint  http://127.0.0.1:8020/v1 (this",
        "          machine only)",
        "GPU       none",
    ]
    monkeypatch.setenv("COLUMNS", "25")
    assert pairs(rows, " ") == [
        " endpoint",
        "   http://127.0.0.1:8020/v1",
        "   (this machine only)",
        " GPU",
        "   none",
    ]


def test_a_sentence_goes_on_below_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    told = ["  Memory is what every stream", "  takes."]
    assert paragraph("  Memory is what every stream takes.") == told


def test_letters_of_two_columns_count_as_two(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = table(("名前", "x"), [("ドラフト", "1"), ("ab", "2")])
    assert [width(line) for line in lines] == [11, 11, 11]
    monkeypatch.setenv("COLUMNS", "22")
    assert pairs([("理由", "計測値は上限を超えています。")]) == [
        "理由  計測値は上限を超",
        "      えています。",
    ]


def test_a_terminal_is_asked_how_wide_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((57, 20)))
    assert tables.room() == 57
