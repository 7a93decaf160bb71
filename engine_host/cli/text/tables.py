"""Tables and lists of values, as wide as they need to be, and folded where the terminal is narrower."""

import itertools
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence

from engine_host.cli.text.chosen_host import typed

_GAP = 2
_NARROW = 14
"""Characters: a column is not folded below this, as a size or a count would be torn."""
_TALL = 3
"""Lines of a row that still read as a row."""
_FEW = 3
"""Columns of a table that is no more than a list with remarks."""
_PAIRS = 16
"""Characters that a value needs beside its name; with less room it stands below."""
# A text of Chinese or Japanese may go on in the next line after any of its letters.
_WIDE = "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
_PIECES = re.compile(rf"\s*(?:[{_WIDE}]|[^\s{_WIDE}]+)")


def room() -> int | None:
    """Return the columns of the terminal that reads this; None for a file or another program.

    `watch` and others that show what they read name theirs in COLUMNS.
    """
    if sys.stdout is not None and sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    named = os.environ.get("COLUMNS", "")
    return int(named) if named.isdecimal() and int(named) else None


def width(text: str) -> int:
    """Return how many columns a terminal takes for a text."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def folded(text: str, columns: int | None, hang: str = "") -> list[str]:
    """Return a text as lines of at most so many columns, each after the first behind `hang`.

    A word is never torn, so that it can be copied: a longer one makes a longer line, as a command does.
    """
    if columns is None or width(text) <= columns or _is_command(text):
        return [text]
    lines, line = [], ""
    for piece in _PIECES.findall(text):
        if line.strip() and width(line + piece) > columns:
            lines.append(line)
            line = hang + piece.lstrip()
        else:
            line += piece
    return [*lines, line]


def paragraph(text: str) -> list[str]:
    """Return a text as lines for the terminal; what goes on begins below its first letter."""
    return folded(typed(text), room(), " " * (len(text) - len(text.lstrip())))


def pairs(rows: Sequence[tuple[str, str]], indent: str = "") -> list[str]:
    """Return names and values below each other; a long value goes on below its own beginning."""
    if not rows:
        return []
    names = max(width(name) for name, _ in rows) + _GAP
    columns = room()
    beside = columns is None or columns - len(indent) - names >= _PAIRS
    hang = indent + " " * (names if beside else _GAP)
    lines = []
    for name, value in rows:
        told = folded(typed(value), None if columns is None else columns - len(hang))
        begun = f"{indent}{_filled(name, names)}" if beside else hang
        lines += [] if beside or not name else [f"{indent}{name}"]
        lines += [f"{begun}{told[0]}".rstrip(), *(f"{hang}{line}" for line in told[1:])]
    return lines


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of a table; where it is wider than the terminal its cells or its rows are folded."""
    cells = [[typed(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    columns = room()
    if columns is None or _whole(widths) <= columns:
        return [_line(row, widths) for row in cells]
    # A column without a value says nothing.
    said = [not rows or any(map(_says, column[1:])) for column in zip(*cells, strict=True)]
    cells = [list(itertools.compress(row, said)) for row in cells]
    if whole := _narrowed(cells, columns):
        return list(itertools.chain(*whole))
    # A last column, such as a reason, has room below each row.
    if len(cells[0]) > _FEW and (main := _narrowed([row[:-1] for row in cells], columns)):
        told = ["    " + _named(cells[0][-1], row[-1]) if _says(row[-1]) else "" for row in cells]
        asides = [[], *(_item(line, columns) for line in told[1:])]
        return [line for pair in zip(main, asides, strict=True) for lines in pair for line in lines]
    return list(_records(cells, columns))


def _narrowed(cells: Sequence[Sequence[str]], columns: int) -> list[list[str]]:
    """Return the lines of each row, the widest columns folded; nothing where that makes rows too tall."""
    least: list[int] = []
    widths: list[int] = []
    for column in zip(*cells, strict=True):
        # The first names the row, and is not folded.
        kept = _NARROW if least else columns
        least.append(max(*map(_longest, column), *(min(width(cell), kept) for cell in column[1:])))
        widths.append(max(least[-1], *map(width, column[1:])))
    while _whole(widths) > columns:
        free = [number for number, one in enumerate(widths) if one > least[number]]
        if not free:
            return []
        widths[max(free, key=widths.__getitem__)] -= 1
    rows = [_row(row, widths) for row in cells]
    return rows if max(map(len, rows)) <= _TALL else []


def _records(cells: Sequence[Sequence[str]], columns: int) -> Iterator[str]:
    """Yield each row as a line of its first cell, and lines of the others with their headings."""
    for row in cells[1:]:
        yield row[0]
        line = ""
        for heading, cell in zip(cells[0][1:], row[1:], strict=True):
            told = _named(heading, cell)
            if not _says(cell):
                continue
            if line and width(f"{line} · {told}") <= columns:
                line += f" · {told}"
                continue
            yield from _item(line, columns)
            line = " " * _GAP + told
        yield from _item(line, columns)


def _item(line: str, columns: int) -> list[str]:
    """Return a line of a row as lines of the terminal; a command stands below its name."""
    hang = " " * 2 * _GAP
    name, _, value = line.partition(": ")
    if _is_command(value) and width(line) > columns:
        return [f"{name}:", hang + value]
    return folded(line, columns, hang) if line else []


def _row(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return a row as lines, its cells folded."""
    cells = map(folded, row, widths)
    return [_line(line, widths) for line in itertools.zip_longest(*cells, fillvalue="")]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return (" " * _GAP).join(map(_filled, row, widths)).rstrip()


def _filled(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def _whole(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _longest(text: str) -> int:
    """Return the columns of the longest piece that is not folded."""
    if _is_command(text):
        return width(text)
    return max((width(piece.lstrip()) for piece in _PIECES.findall(text)), default=0)


def _named(heading: str, cell: str) -> str:
    """Return a value behind its heading; a column of remarks may have none."""
    return f"{heading}: {cell}" if heading else cell


def _says(cell: str) -> bool:
    return cell not in {"", "-"}


def _is_command(text: str) -> bool:
    return text.lstrip().startswith(("sndr ", "$ "))
