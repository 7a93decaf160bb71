"""Changing one value in a YAML text: its lines are written anew, every other line stays as it is."""

import io
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node

from engine_host.catalog.document import dotted, invalid
from engine_host.catalog.yaml.file import parse
from engine_host.catalog.yaml.nodes import compose, round_trip
from engine_host.protocol.language import tr

# A value is one line, however long.
_WIDTH = 1 << 20
KeyNames = tuple[str, ...]


def set_value(text: str, path: KeyNames, value: Any, where: str) -> str:
    """The text with this value at a path of keys, which are made where they are missing.

    Raises HostError(preset_invalid) for a text that cannot be read, or a path that leads into a list or a
    plain value.
    """
    expected = _data(text, where)
    inner = _inner(expected, path, where)
    inner[path[-1]] = value
    return _checked(_with_entry(text, path, value), expected, path, where)


def remove_value(text: str, path: KeyNames, where: str) -> str:
    """The text without this key, and without what holds nothing any more; the same text where it is not.

    Raises HostError(preset_invalid) for a text that cannot be read.
    """
    expected = _data(text, where)
    tables = [expected]
    for key in path:
        if not isinstance(tables[-1], dict) or key not in tables[-1]:
            return text
        tables.append(tables[-1][key])
    while len(path) > 1 and len(tables[len(path) - 1]) == 1:
        path = path[:-1]
    del tables[len(path) - 1][path[-1]]
    return _checked(_without_entry(text, path), expected, path, where)


def _data(text: str, where: str) -> dict[str, Any]:
    if all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines()):
        return {}
    return parse(text, where).data


def _checked(text: str, expected: Mapping[str, Any], path: KeyNames, where: str) -> str:
    """Raise HostError(preset_invalid) when the text would not say what was meant."""
    if _data(text, where) != expected:
        raise invalid(
            where, None, dotted(path), tr("it can only be changed in the text"), tr("Edit the YAML.")
        )
    return text


def _inner(data: Any, path: KeyNames, where: str = "") -> Any:
    """The table that holds the last key of a path, made where it is missing."""
    for place, key in enumerate(path[:-1]):
        if data.get(key) is None:
            data[key] = CommentedMap()
        data = data[key]
        if not isinstance(data, dict):
            raise invalid(
                where, None, dotted(path[: place + 1]), tr("it does not hold keys"), tr("Edit the YAML.")
            )
    return data


def _with_entry(text: str, path: KeyNames, value: Any) -> str:
    start, stop, column, depth = _lines(text, path)
    table = _read(text[start:stop], column)
    _inner(table, path[depth:])[path[-1]] = _writable(value)
    return _replaced(text, start, stop, _written(table, column))


def _without_entry(text: str, path: KeyNames) -> str:
    start, stop, column, depth = _lines(text, path)
    table = _read(text[start:stop], column)
    del _inner(table, path[depth:])[path[-1]]
    return _replaced(text, start, stop, _written(table, column) if table else "")


def _lines(text: str, path: KeyNames) -> tuple[int, int, int, int]:
    """The place of the innermost lines on a path that can be written alone: start, end, column and depth.

    They are those of one key of a block; behind the block's last key for one that is not there yet.
    """
    block, depth = compose(text), 0
    if not _is_block(block):
        # Nothing but comments, or braces around everything.
        return (len(text) if block is None else 0), len(text), 0, 0
    while True:
        key, value = next((entry for entry in block.value if entry[0].value == path[depth]), (None, None))
        if key is None or depth + 1 == len(path) or not _is_block(value):
            break
        block, depth = value, depth + 1
    stop = _end(block.value[-1] if key is None else (key, value))
    if text[stop - 1 : stop] != "\n":
        # Behind a text in `|` or `>` the next line begins already.
        stop = text.find("\n", stop) + 1 or len(text)
    start = stop if key is None else text.rfind("\n", 0, key.start_mark.index) + 1
    return start, stop, block.value[0][0].start_mark.column, depth


def _is_block(node: Node | None) -> bool:
    return isinstance(node, MappingNode) and not node.flow_style and bool(node.value)


def _end(entry: Sequence[Node]) -> int:
    """The end of the last of these nodes; a block's own mark lies behind the comments that follow it."""
    last = entry[-1]
    if isinstance(last, CollectionNode) and not last.flow_style and last.value:
        inner = last.value[-1]
        return _end(inner if isinstance(inner, tuple) else (inner,))
    # A value that is not there ends before its colon.
    return max(int(last.end_mark.index), int(entry[0].end_mark.index) + len(entry) - 1)


def _read(lines: str, column: int) -> Any:
    """The table in lines that begin at a column."""
    margin = " " * column
    text = "".join(
        line.removeprefix(margin) for line in lines.replace("\r\n", "\n").splitlines(keepends=True)
    )
    return round_trip(_WIDTH).load(text) or CommentedMap()


def _written(table: Any, column: int) -> str:
    written = io.StringIO()
    round_trip(_WIDTH).dump(table, written)
    return textwrap.indent(written.getvalue(), " " * column)


def _replaced(text: str, start: int, stop: int, lines: str) -> str:
    before, after = text[:start], text[stop:]
    if before and not before.endswith("\n"):
        before += "\n"
    return before + (lines.replace("\n", "\r\n") if "\r\n" in text else lines) + after


def _writable(value: Any) -> Any:
    """Lists on one line; tables as those around them are."""
    if isinstance(value, dict):
        return CommentedMap((key, _writable(inner)) for key, inner in value.items())
    if isinstance(value, list | tuple):
        items = CommentedSeq(map(_writable, value))
        items.fa.set_flow_style()
        return items
    return value
