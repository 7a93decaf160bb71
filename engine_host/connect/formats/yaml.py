"""YAML in blocks: a value is written anew where it stands, a missing one at the end of its block.

What is written otherwise (braces around it, anchors, several documents) is left to the person.
"""

import json
import re
from collections.abc import Collection
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from engine_host.connect.formats.tree import MOST_NESTED, FormatError, in_the_way, index_of, is_entries, same

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_OWN_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
_MOST_VALUES = 50_000


def read(text: str) -> Any:
    """Return the value in a text, None for an empty one. Raises FormatError, with the line."""
    try:
        root = _composed(text)
        if root is None:
            return None
        _check(root)
        return _quiet(YAML(typ="safe", pure=True)).load(text)
    except (YAMLError, ValueError, TypeError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark is not None else ""
        said = getattr(error, "problem", None) or str(error) or "it cannot be read"
        raise FormatError(f"{line}{said}") from error


def changed(text: str, want: dict[str, Any], unless_set: Collection[str] = ()) -> str:
    """Return the text with what is wanted in it. Raises FormatError."""
    have = read(text)
    root = _composed(text)
    if root is None:
        return _ended(text) + _block(want, 0)
    editor = _Editor(_ended(text))
    editor.merge_table(root, have, want, unless_set, "")
    return editor.result()


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _composed(text: str) -> Node | None:
    return _quiet(YAML(pure=True)).compose(text)


def _quiet(yaml: YAML) -> YAML:
    # An anchor may be given anew; the library warns of it on the terminal.
    yaml.composer.warn_double_anchors = False
    return yaml


def _check(root: Node) -> None:
    """Raise FormatError for a text whose values, with all repetitions, would be too many or too deep."""
    sizes: dict[int, int] = {}

    def size(node: Node, depth: int) -> int:
        if depth > MOST_NESTED:
            raise FormatError("it is nested too deeply")
        if id(node) not in sizes:
            # Until it is known: an anchor inside itself has no end.
            sizes[id(node)] = _MOST_VALUES
            parts = node.value if isinstance(node, CollectionNode) else ()
            inner = [one for part in parts for one in (part if isinstance(part, tuple) else (part,))]
            sizes[id(node)] = 1 + sum(size(one, depth + 1) for one in inner)
        if sizes[id(node)] > _MOST_VALUES:
            raise FormatError("it holds too many values")
        return sizes[id(node)]

    size(root, 0)


class _Editor:
    """Collects what is put where, and puts it there at once."""

    def __init__(self, text: str) -> None:
        self._text = text
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

    def merge_table(
        self, node: Node, have: Any, want: dict[str, Any], unless_set: Collection[str], where: str
    ) -> None:
        if not isinstance(node, MappingNode) or node.flow_style or not node.value:
            raise _by_hand(where)
        column = node.value[0][0].start_mark.column
        missing: dict[str, Any] = {}
        for key, value in want.items():
            found = [entry for entry in node.value if entry[0].value == key]
            if len(found) > 1:
                raise FormatError(f"{key!r} stands {len(found)} times in {where or 'the file'}")
            there = have.get(key)
            if key in unless_set and there is not None:
                continue
            inner_where = f"{where}.{key}" if where else key
            if not found:
                missing[key] = value
            elif not _says_already(there, value):
                name, inner = found[0]
                self._merge(name, inner, there, value, column, inner_where)
        if missing:
            self._add(_end(self._text, node), _block(missing, column))

    def _merge(self, name: Node, node: Node, have: Any, want: Any, column: int, where: str) -> None:
        if isinstance(want, dict):
            if have is None:
                self._fill(name, node, _block(want, column + 2))
            else:
                self.merge_table(node, have, want, (), where)
        elif is_entries(want):
            if have is None or have == []:
                self._fill(name, node, "".join(_item(entry, column + 2) for entry in want))
            else:
                self._merge_entries(node, have, want, where)
        elif isinstance(have, dict | list):
            raise in_the_way(where)
        elif isinstance(want, list):
            self._fill(name, node, "".join(_line("- ", value, column + 2) for value in want))
        elif not isinstance(node, ScalarNode) or node.style in ("|", ">") or node.anchor:
            raise _by_hand(where)
        else:
            start, stop = self._place(name, node)
            self._edits.append((start, stop, ("" if start != stop else " ") + _scalar(want)))

    def _merge_entries(self, node: Node, have: Any, want: list[dict[str, Any]], where: str) -> None:
        if not isinstance(node, SequenceNode) or node.flow_style or not isinstance(have, list):
            raise _by_hand(where)
        missing = ""
        for entry in want:
            place = index_of(have, entry)
            if place is None:
                missing += _item(entry, node.start_mark.column)
            else:
                self.merge_table(node.value[place], have[place], entry, (), where)
        if missing:
            self._add(_end(self._text, node), missing)

    def _place(self, name: Node, node: Node) -> tuple[int, int]:
        """The place of a key's value; of one that is not there behind the colon."""
        start, stop = int(node.start_mark.index), int(node.end_mark.index)
        if start < stop:
            return start, stop
        after = self._text.find(":", name.end_mark.index) + 1
        if not after or self._text[name.end_mark.index : after].strip() != ":":
            # A key behind a question mark may go without one.
            raise _by_hand(name.value)
        return after, after

    def _fill(self, name: Node, node: Node, lines: str) -> None:
        """Put lines under a key that has nothing yet."""
        start, stop = self._place(name, node)
        if node.anchor or self._text[start:stop].strip() not in ("", "[]", "{}", "null", "~"):
            raise _by_hand(name.value)
        while start and self._text[start - 1] == " ":
            start -= 1
        rest = self._text[stop:].split("\n", 1)[0]
        if rest.strip():
            raise _by_hand(name.value)
        self._edits.append((start, stop + len(rest), "\n" + lines.rstrip("\n")))

    def _add(self, place: int, lines: str) -> None:
        self._edits.append((place, place, lines))


def _says_already(have: Any, want: Any) -> bool:
    if isinstance(want, list) and not is_entries(want):
        return isinstance(have, list)
    return same(have, want)


def _end(text: str, node: Node) -> int:
    """Return the place behind the last line of a block; its own mark lies behind the comments that follow."""
    last: Any = node
    while isinstance(last, CollectionNode) and not last.flow_style and last.value:
        entry = last.value[-1]
        key, last = entry if isinstance(entry, tuple) else (None, entry)
        # A value that is not there ends before its colon.
        least = key.end_mark.index + 1 if key is not None else 0
    stop = max(int(last.end_mark.index), int(least))
    if text[stop - 1 : stop] != "\n":
        stop = text.find("\n", stop) + 1 or len(text)
    return stop


def _block(table: dict[str, Any], column: int) -> str:
    lines = ""
    for key, value in table.items():
        name = _scalar(key)
        if isinstance(value, dict):
            lines += f"{' ' * column}{name}:\n{_block(value, column + 2)}"
        elif is_entries(value):
            lines += f"{' ' * column}{name}:\n" + "".join(_item(entry, column + 2) for entry in value)
        elif isinstance(value, list):
            lines += f"{' ' * column}{name}:\n" + "".join(_line("- ", one, column + 2) for one in value)
        else:
            lines += _line(f"{name}: ", value, column)
    return lines


def _item(entry: dict[str, Any], column: int) -> str:
    block = _block(entry, column + 2)
    return f"{' ' * column}- {block[column + 2 :]}"


def _line(before: str, value: Any, column: int) -> str:
    return f"{' ' * column}{before}{_scalar(value)}\n"


def _scalar(value: Any) -> str:
    plain = isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _OWN_WORDS
    return str(value) if plain else json.dumps(value, ensure_ascii=False)


def _by_hand(where: str) -> FormatError:
    return FormatError(f"{where or 'it'} is written in a way that only you can change safely")
