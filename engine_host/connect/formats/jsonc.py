"""JSON with comments and trailing commas: read with places, and changed by the fewest insertions."""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from engine_host.connect.formats.tree import MOST_NESTED, FormatError, in_the_way, index_of, is_entries, same

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_UNIT = "  "
_SPACE = " \t\r\n"


@dataclass
class _Node:
    """A value and where it stands; a container's `close` is the place of its last sign."""

    value: Any
    start: int
    stop: int
    members: list[tuple[str, "_Node"]] = field(default_factory=list)
    items: list["_Node"] = field(default_factory=list)
    comma: int | None = None

    @property
    def children(self) -> list["_Node"]:
        return self.items or [node for _, node in self.members]


def read(text: str) -> Any:
    """Return the value in a text, None for one of comments alone. Raises FormatError, with the line."""
    node = _Reader(text).document()
    return None if node is None else node.value


def changed(text: str, want: Any, unless_set: Collection[str] = ()) -> str:
    """Return the text with what is wanted in it; everything else is where it was. Raises FormatError."""
    root = _Reader(text).document()
    if root is None:
        begin = text if not text or text.endswith("\n") else text + "\n"
        return begin + _written(want, "", _UNIT) + "\n"
    editor = _Editor(text, _unit(text, root))
    editor.merge(root, want, unless_set, "")
    return editor.result()


class _Reader:
    """Reads one text; keeps where each value stands."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def document(self) -> _Node | None:
        self._skip()
        if self._at == len(self._text):
            return None
        node = self._value(0)
        self._skip()
        if self._at != len(self._text):
            raise self._error("there is more after its end")
        return node

    def _skip(self) -> None:
        text, end = self._text, len(self._text)
        while self._at < end:
            if text[self._at] in _SPACE:
                self._at += 1
            elif (after := comment_end(text, self._at)) is not None:
                if after < 0:
                    raise self._error("a comment does not end")
                self._at = after
            else:
                return

    def _value(self, depth: int) -> _Node:
        if depth > MOST_NESTED:
            raise self._error("it is nested too deeply")
        start, sign = self._at, self._text[self._at : self._at + 1]
        if sign == "{":
            return self._object(depth)
        if sign == "[":
            return self._array(depth)
        if sign == '"':
            return _Node(self._string(), start, self._at)
        for word, value in _WORDS.items():
            if self._text.startswith(word, start):
                self._at += len(word)
                return _Node(value, start, self._at)
        found = _NUMBER.match(self._text, start)
        if found is None:
            raise self._error("a value is expected")
        self._at = found.end()
        return _Node(json.loads(found.group()), start, self._at)

    def _string(self) -> str:
        found = _STRING.match(self._text, self._at)
        if found is None:
            raise self._error("a text does not end, or is not in double quotes")
        try:
            value = json.loads(found.group())
        except ValueError as error:
            raise self._error("a text holds a wrong escape") from error
        self._at = found.end()
        return str(value)

    def _object(self, depth: int) -> _Node:
        node = _Node({}, self._at, 0)
        self._at += 1
        while not self._ends(node, "}"):
            key = self._string()
            self._skip()
            if self._text[self._at : self._at + 1] != ":":
                raise self._error("a colon is expected")
            self._at += 1
            self._skip()
            inner = self._value(depth + 1)
            node.members.append((key, inner))
            node.value[key] = inner.value
            self._separator(node, "}")
        return node

    def _array(self, depth: int) -> _Node:
        node = _Node([], self._at, 0)
        self._at += 1
        while not self._ends(node, "]"):
            inner = self._value(depth + 1)
            node.items.append(inner)
            node.value.append(inner.value)
            self._separator(node, "]")
        return node

    def _ends(self, node: _Node, closing: str) -> bool:
        self._skip()
        if self._text[self._at : self._at + 1] != closing:
            return False
        self._at += 1
        node.stop = self._at
        return True

    def _separator(self, node: _Node, closing: str) -> None:
        self._skip()
        sign = self._text[self._at : self._at + 1]
        node.comma = None
        if sign == ",":
            node.comma = self._at
            self._at += 1
        elif sign != closing:
            raise self._error(f"a comma or {closing} is expected")

    def _error(self, what: str) -> FormatError:
        return FormatError(f"line {self._text.count(chr(10), 0, self._at) + 1}: {what}")


class _Editor:
    """Collects what is put where, and puts it there at once."""

    def __init__(self, text: str, unit: str) -> None:
        self._text, self._unit = text, unit
        self._edits: list[tuple[int, int, str]] = []

    def result(self) -> str:
        text = self._text
        # From the end; of two at one place the later one stands behind the earlier.
        numbered = sorted(
            ((start, stop, nth) for nth, (start, stop, _) in enumerate(self._edits)), reverse=True
        )
        for start, stop, nth in numbered:
            text = text[:start] + self._edits[nth][2] + text[stop:]
        return text

    def merge(self, node: _Node, want: Any, unless_set: Collection[str], where: str) -> None:
        if node.value is None and isinstance(want, dict | list):
            self._replace(node, want)
        elif isinstance(want, dict):
            self._merge_object(node, want, unless_set, where)
        elif is_entries(want):
            self._merge_entries(node, want, where)
        elif isinstance(want, list):
            if not isinstance(node.value, list):
                self._replace(node, want)
        elif isinstance(node.value, dict | list):
            raise in_the_way(where)
        elif not same(node.value, want):
            self._replace(node, want)

    def _merge_object(
        self, node: _Node, want: dict[str, Any], unless_set: Collection[str], where: str
    ) -> None:
        if not isinstance(node.value, dict):
            raise in_the_way(where)
        missing: list[str] = []
        margin = self._inner_margin(node)
        for key, value in want.items():
            found = [inner for name, inner in node.members if name == key]
            if len(found) > 1:
                raise FormatError(f"{key!r} stands {len(found)} times in {where or 'the file'}")
            if key in unless_set and found and found[0].value is not None:
                continue
            if found:
                self.merge(found[0], value, (), f"{where}.{key}" if where else key)
            else:
                name = json.dumps(key, ensure_ascii=False)
                missing.append(f"{name}: {_written(value, margin, self._unit)}")
        self._insert(node, missing, margin)

    def _merge_entries(self, node: _Node, want: list[dict[str, Any]], where: str) -> None:
        if not isinstance(node.value, list):
            raise in_the_way(where)
        margin = self._inner_margin(node)
        missing = []
        for entry in want:
            place = index_of(node.value, entry)
            if place is None:
                missing.append(_written(entry, margin, self._unit))
            else:
                self.merge(node.items[place], entry, (), where)
        self._insert(node, missing, margin)

    def _replace(self, node: _Node, want: Any) -> None:
        margin = self._margin(node.start)
        self._edits.append((node.start, node.stop, _written(want, margin, self._unit)))

    def _insert(self, node: _Node, lines: list[str], margin: str) -> None:
        if not lines:
            return
        joined = f",\n{margin}".join(lines)
        outer = "\n" + self._margin(node.start)
        closing = node.stop - 1
        children = node.children
        if not children:
            before = closing
            while self._text[before - 1] in _SPACE:
                before -= 1
            # Comments stay where they are, in front.
            self._edits.append((before, closing, f"\n{margin}{joined}{outer}"))
            return
        last = children[-1].stop
        trailing = node.comma is not None
        after = _line_rest(self._text, last if node.comma is None else node.comma + 1, closing)
        if not trailing:
            self._edits.append((last, last, ","))
        tail = "" if "\n" in self._text[after:closing] else outer
        self._edits.append((after, after, f"\n{margin}{joined}{',' if trailing else ''}{tail}"))

    def _inner_margin(self, node: _Node) -> str:
        """The space in front of a container's own lines."""
        for start in [self._member_start(node, place) for place in range(len(node.children))]:
            line = self._text.rfind("\n", 0, start) + 1
            if not self._text[line:start].strip(" \t") and line > node.start:
                return self._text[line:start]
        return self._margin(node.start) + self._unit

    def _member_start(self, node: _Node, place: int) -> int:
        child = node.children[place]
        if node.items:
            return child.start
        # From the value back to the quote that opens its name.
        before = node.children[place - 1].stop if place else node.start + 1
        return self._first_sign(before, child.start)

    def _first_sign(self, start: int, stop: int) -> int:
        while start < stop:
            if (after := comment_end(self._text, start)) is not None:
                start = after
            elif self._text[start] == '"':
                return start
            else:
                start += 1
        return stop

    def _margin(self, start: int) -> str:
        """The space at the beginning of the line in which a place stands."""
        line = self._text.rfind("\n", 0, start) + 1
        found = re.compile(r"[ \t]*").match(self._text, line)
        return found.group() if found else ""


def comment_end(text: str, start: int) -> int | None:
    """Return the end of the comment that begins at a place; None where none does, -1 for one without end."""
    if text.startswith("//", start):
        end = text.find("\n", start)
        return len(text) if end < 0 else end
    if text.startswith("/*", start):
        end = text.find("*/", start + 2)
        return -1 if end < 0 else end + 2
    return None


def _line_rest(text: str, start: int, stop: int) -> int:
    """Return the end of what belongs to a value on its line: a comment behind it."""
    at = end = start
    while at < stop and text[at] not in "\r\n":
        after = comment_end(text, at)
        if after is None:
            if text[at] not in " \t":
                break
            at += 1
        else:
            at = end = min(after, stop)
    # A comment that ends with its line takes the carriage return with it.
    return end - 1 if end > start and text[end - 1] == "\r" else end


def _unit(text: str, root: _Node) -> str:
    """Return the indentation of a text: that of its first line inside."""
    found = re.compile(r"\{[ \t]*\r?\n([ \t]+)\"").match(text, root.start)
    return found.group(1) if found else _UNIT


def _written(value: Any, margin: str, unit: str) -> str:
    text = json.dumps(value, indent=unit, ensure_ascii=False)
    return text.replace("\n", "\n" + margin)
