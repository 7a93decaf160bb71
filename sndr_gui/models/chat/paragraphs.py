"""Cuts a growing Markdown text into ended paragraphs, lines of code, and the rest that still grows."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST = 3000
"""Characters of a paragraph or a line of code without an end; a longer one costs more with every word."""
_LONGEST_FENCE = 40


@dataclass(frozen=True)
class Prose:
    """A paragraph that has ended."""

    text: str


@dataclass(frozen=True)
class CodeStart:
    """A block of code begins; the language as the answer names it."""

    language: str


@dataclass(frozen=True)
class Code:
    """More of the code."""

    text: str


@dataclass(frozen=True)
class CodeEnd:
    """The block of code has ended."""


Piece = Prose | CodeStart | Code | CodeEnd


class MarkdownStream:
    """Takes a text in pieces, looks at each character once, and keeps only what has not ended.

    A list ends only where something that is no part of it begins. Code goes out as it comes; only what may
    become a closing fence is held back.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._partial = ""
        self._length = 0
        self._fence = ""
        self._breaks = 0
        self._in_line = False

    @property
    def rest(self) -> str:
        """The text of the paragraph that has not ended; empty in a block of code."""
        return "" if self._fence else "\n".join([*self._lines, self._partial])

    def feed(self, text: str) -> list[Piece]:
        """Take more of the text; return what ended by it."""
        found: list[Piece] = []
        *complete, tail = text.split("\n")
        for line in complete:
            self._take_line(line, found)
        if tail:
            self._take_tail(tail, found)
        return found

    def finish(self) -> list[Piece]:
        """Return what is left when the text has ended."""
        found: list[Piece] = []
        if self._fence:
            if self._partial and not self._closes(self._partial):
                self._code(self._partial, found)
            self._partial = ""
            found.append(CodeEnd())
            self._fence = ""
        else:
            if self._partial:
                self._lines.append(self._partial)
                self._partial = ""
            self._end_paragraph(found)
        return found

    def _take_tail(self, tail: str, found: list[Piece]) -> None:
        if not self._fence:
            self._partial += tail
            while self._length + len(self._partial) > LONGEST:
                self._cut(found)
        elif self._in_line:
            self._code(tail, found)
        else:
            self._partial += tail
            if len(self._partial) > _LONGEST_FENCE or not self._may_close(self._partial):
                held, self._partial, self._in_line = self._partial, "", True
                self._code(held, found)

    def _take_line(self, end: str, found: list[Piece]) -> None:
        line, self._partial = self._partial + end, ""
        if self._fence:
            self._take_code_line(line, found)
            return
        mark = _fence(line)
        if mark:
            self._end_paragraph(found)
            self._fence, self._breaks, self._in_line = mark, 0, False
            found.append(CodeStart(line.strip().lstrip("`~").strip()[:40]))
        elif not line.strip() and not _is_list(self._lines):
            self._end_paragraph(found)
        else:
            ended = _is_list(self._lines) and not self._lines[-1].strip()
            if ended and line.strip() and not _continues_list(line):
                self._end_paragraph(found)
            self._lines.append(line)
            self._length += len(line) + 1
            while self._length > LONGEST:
                self._cut(found)

    def _take_code_line(self, line: str, found: list[Piece]) -> None:
        if not self._in_line and self._closes(line):
            found.append(CodeEnd())
            self._fence = ""
            return
        if line:
            self._code(line, found)
        self._breaks += 1
        self._in_line = False

    def _code(self, text: str, found: list[Piece]) -> None:
        # The line break goes out before the next line, so that a block does not end with an empty one.
        found.append(Code("\n" * self._breaks + text))
        self._breaks = 0

    def _closes(self, line: str) -> bool:
        bare = line.strip()
        return bare.startswith(self._fence) and not bare.strip(self._fence[0])

    def _may_close(self, line: str) -> bool:
        return not line.strip().strip(self._fence[0])

    def _end_paragraph(self, found: list[Piece]) -> None:
        if any(line.strip() for line in self._lines):
            found.append(Prose("\n".join(self._lines).rstrip("\n")))
        self._lines, self._length = [], 0

    def _cut(self, found: list[Piece]) -> None:
        """Take the beginning of a paragraph that does not end for one of its own."""
        whole = self.rest
        head = self._table_head()
        line_end = whole.rfind("\n", 0, LONGEST)
        if head and line_end > len(head):
            # The rows that follow are a table too, under the same head.
            found.append(Prose(whole[:line_end]))
            whole = head + whole[line_end + 1 :]
            *self._lines, self._partial = whole.split("\n")
            self._length = sum(len(line) + 1 for line in self._lines)
            return
        cut = max(whole.rfind(" ", 0, LONGEST), whole.rfind("\n", 0, LONGEST)) + 1 or LONGEST
        found.append(Prose(whole[:cut]))
        *self._lines, self._partial = whole[cut:].split("\n")
        self._length = sum(len(line) + 1 for line in self._lines)

    def _table_head(self) -> str:
        """Return the two lines that begin a table; empty where there is none, or they are too long."""
        if len(self._lines) < 3 or "|" not in self._lines[0] or set(self._lines[1]) - set("|:- \t"):
            return ""
        head = f"{self._lines[0]}\n{self._lines[1]}\n"
        return head if "-" in self._lines[1] and len(head) < LONGEST // 3 else ""


def _fence(line: str) -> str:
    """Return the marks that begin a block of code on this line; empty where none does."""
    bare = line.lstrip()
    sign = bare[:1]
    if sign not in ("`", "~") or not sign:
        return ""
    behind = bare.lstrip(sign)
    count = len(bare) - len(behind)
    # Marks behind the fence make it code within a line.
    return sign * count if count >= 3 and "`" not in behind else ""


def _is_list(lines: list[str]) -> bool:
    return bool(lines) and _starts_item(lines[0])


def _continues_list(line: str) -> bool:
    return _starts_item(line) or line.startswith(("  ", "\t"))


def _starts_item(line: str) -> bool:
    bare = line.lstrip()
    head, _, rest = bare.partition(" ")
    return bool(rest) and (head in ("-", "*", "+") or (head[:-1].isdigit() and head[-1:] in (".", ")")))
