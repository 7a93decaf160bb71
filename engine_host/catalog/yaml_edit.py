"""Changing one value in a YAML text: every other character stays, comments and order included."""

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from engine_host.catalog.yaml_file import Document, dotted, dump, invalid, parse

_STEP = 2
KeyNames = tuple[str, ...]


def set_value(text: str, path: KeyNames, value: Any, where: str) -> str:
    """The text with this value at a path of keys, which are made where they are missing.

    Raises HostError(preset_invalid) for a text that cannot be read, or a path that leads into a list or a
    plain value.
    """
    document = _parsed(text, where)
    wanted = _with(document.data, path, value, where)
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None or not document.data:
        changed = text + ("\n" if text and not text.endswith("\n") else "") + dump(wanted)
    else:
        changed = _set(text, root, path, value)
    return _checked(changed, wanted, path, where)


def remove_value(text: str, path: KeyNames, where: str) -> str:
    """The text without this key, and without what holds nothing any more; the same text where it is not.

    Raises HostError(preset_invalid) for a text that cannot be read.
    """
    document = _parsed(text, where)
    if not _has(document.data, path):
        return text
    while len(path) > 1 and len(_at(document.data, path[:-1])) == 1:
        path = path[:-1]
    wanted = copy.deepcopy(document.data)
    inner = wanted
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    return _checked(_remove(text, root, path), wanted, path, where)


def _parsed(text: str, where: str) -> Document:
    if all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines()):
        return Document(text, {}, {})
    return parse(text, where)


def _checked(text: str, wanted: Mapping[str, Any], path: KeyNames, where: str) -> str:
    """Raise HostError(preset_invalid) when the text would not say what was meant."""
    if _parsed(text, where).data != wanted:
        raise invalid(where, None, dotted(path), "it can only be changed in the text", "Edit the YAML.")
    return text


def _has(data: Any, path: KeyNames) -> bool:
    for key in path:
        if not isinstance(data, dict) or key not in data:
            return False
        data = data[key]
    return True


def _at(data: Any, path: KeyNames) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _with(data: dict[str, Any], path: KeyNames, value: Any, where: str) -> dict[str, Any]:
    made = copy.deepcopy(data)
    inner = made
    for place, key in enumerate(path[:-1]):
        if inner.get(key) is None:
            inner[key] = {}
        if not isinstance(inner[key], dict):
            raise invalid(where, None, dotted(path[: place + 1]), "it does not hold keys", "Edit the YAML.")
        inner = inner[key]
    inner[path[-1]] = value
    return made


def _set(text: str, root: Any, path: KeyNames, value: Any) -> str:
    mapping, rest = root, list(path)
    while True:
        entry = _entry(mapping, rest[0])
        if entry is None:
            return _insert(text, mapping, _nested(rest, value))
        key, node = entry
        if len(rest) == 1 or not isinstance(node, yaml.MappingNode) or not node.value:
            inner = value if len(rest) == 1 else _nested(rest[1:], value)
            return _replace(text, mapping, key, node, inner)
        mapping, rest = node, rest[1:]


def _nested(path: Sequence[str], value: Any) -> dict[str, Any]:
    made = value
    for key in reversed(path):
        made = {key: made}
    return dict(made)


def _entry(mapping: Any, name: str) -> tuple[Any, Any] | None:
    return next(((key, node) for key, node in mapping.value if key.value == name), None)


def _replace(text: str, mapping: Any, key: Any, node: Any, value: Any) -> str:
    start, end = node.start_mark.index, _end(node)
    if isinstance(value, dict) and value and not mapping.flow_style:
        lines = _block(value, mapping.value[0][0].start_mark.column + _STEP, _newline(text))
        colon = text.index(":", key.end_mark.index) + 1
        # What stands behind on the same line is a comment to the key.
        behind = max(end, colon)
        stop = _line_end(text, behind)
        return text[:colon] + text[behind:stop] + _newline(text) + lines + text[stop:]
    if end <= start or (isinstance(node, yaml.CollectionNode) and not node.flow_style):
        # An empty value, or one that begins on a line of its own.
        colon = text.index(":", key.end_mark.index) + 1
        return f"{text[:colon]} {_inline(value)}{text[max(end, colon) :]}"
    ending = _newline(text) if getattr(node, "style", None) in ("|", ">") else ""
    return text[:start] + _inline(value) + ending + text[end:]


def _insert(text: str, mapping: Any, entry: dict[str, Any]) -> str:
    if mapping.flow_style:
        end = mapping.end_mark.index - 1
        comma = ", " if mapping.value else ""
        return text[:end].rstrip() + comma + _inline(entry)[1:-1] + text[end:]
    lines = _block(entry, mapping.value[0][0].start_mark.column, _newline(text))
    end = _line_end(text, _end(mapping))
    # A block scalar ends with its line; everything else before the end of its own.
    if end and text[end - 1] == "\n":
        return text[:end] + lines + _newline(text) + text[end:]
    return text[:end] + _newline(text) + lines + text[end:]


def _remove(text: str, root: Any, path: KeyNames) -> str:
    mapping = root
    for name in path[:-1]:
        entry = _entry(mapping, name)
        assert entry is not None
        mapping = entry[1]
    entry = _entry(mapping, path[-1])
    assert entry is not None
    key, node = entry
    if mapping.flow_style:
        place = mapping.value.index(entry)
        start = key.start_mark.index
        end = _end(node) or key.end_mark.index
        if place + 1 < len(mapping.value):
            end = mapping.value[place + 1][0].start_mark.index
        elif place:
            start = _end(mapping.value[place - 1][1])
        return text[:start] + text[end:]
    start = text.rfind("\n", 0, key.start_mark.index) + 1
    end = max(_end(node), key.end_mark.index)
    if text[end - 1] != "\n":
        end = _line_end(text, end)
        end = text.find("\n", end) + 1 or len(text)
    return text[:start] + text[end:]


def _end(node: Any) -> int:
    """Where the last character of a value is; a block's own mark lies behind the comments that follow."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        if isinstance(last, tuple):
            key, value = last
            return max(_end(value), int(key.end_mark.index) + 1)
        return _end(last)
    return int(node.end_mark.index)


def _line_end(text: str, place: int) -> int:
    """The end of the line of a place, without its line break; a place behind a break is itself."""
    if place and text[place - 1] == "\n":
        return place
    end = text.find("\n", place)
    end = len(text) if end < 0 else end
    return end - 1 if end > place and text[end - 1] == "\r" else end


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _block(entry: Mapping[str, Any], column: int, newline: str) -> str:
    """Lines of keys at a column, without the last line break."""
    lines = []
    for key, value in entry.items():
        name = _inline(key)
        if isinstance(value, dict) and value:
            lines += [" " * column + f"{name}:", _block(value, column + _STEP, newline)]
        else:
            lines.append(" " * column + f"{name}: {_inline(value)}")
    return newline.join(lines)


def _inline(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, str) and any(sign in value for sign in "\n\r\x85\u2028\u2029"):
        return json.dumps(value)
    if isinstance(value, dict | list | tuple):
        if isinstance(value, dict):
            inner = ", ".join(f"{_inline(key)}: {_inline(one)}" for key, one in value.items())
            return f"{{{inner}}}"
        return "[" + ", ".join(map(_inline_item, value)) + "]"
    return dump({"k": value}).removeprefix("k:").strip(" \n") if not _long(value) else json.dumps(value)


def _inline_item(value: Any) -> str:
    text = _inline(value)
    plain = isinstance(value, str) and text == value
    return json.dumps(value, ensure_ascii=False) if plain and any(sign in value for sign in ",[]{}") else text


def _long(value: Any) -> bool:
    """Whether the writer of YAML would break it into lines."""
    return isinstance(value, str) and len(value) > 80
