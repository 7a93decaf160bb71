"""The nodes of a YAML text as ruamel.yaml reads them, and the values that the catalogue takes of them."""

import math
import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError, MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.resolver import VersionedResolver

from engine_host.catalog.document import Document, KeyPath, dotted, invalid
from engine_host.protocol.text import first_break

_DEEPEST = 32
# Ten times as many as an exported preset has with all that it needs.
_MOST_NODES = 20_000
_LONGEST_NUMBER = 20
_TAG = "tag:yaml.org,2002:"
# Fewer than YAML 1.2 has: `0x10`, `.inf` and dates are words.
_SCALARS = (
    ("null", re.compile(r"(?:~|null|Null|NULL|)$"), ("~", "n", "N", "")),
    ("bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    ("int", re.compile(r"[-+]?[0-9]+$"), "-+0123456789"),
    ("float", re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"), "-+.0123456789"),
)
_BY_FIRST = {
    first: [(_TAG + tag, pattern) for tag, pattern, begins in _SCALARS if first in begins]
    for first in {first for _, _, begins in _SCALARS for first in begins}
}


def parse_nodes(text: str, where: str) -> Document:
    """Return the document in a text of bearable size. Raises HostError(preset_invalid)."""
    try:
        root = compose(text)
    except MaxDepthExceededError as error:
        raise invalid(where, error.problem_mark.line + 1, "", "it is nested too deeply") from error
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        says = ", ".join(part for part in (error.context, error.problem) if part) or "it is not YAML"
        raise invalid(where, None if mark is None else mark.line + 1, "", says) from error
    except YAMLError as error:
        raise invalid(where, None, "", f"it is not YAML: {error}") from error
    if not isinstance(root, MappingNode):
        says = "it is empty" if root is None else "it must be keys and values"
        raise invalid(where, 1 if root is None else _line(root), "", says)
    lines: dict[KeyPath, int] = {}
    return Document(text, _value(root, (), lines, where), lines)


def compose(text: str) -> Any:
    """The nodes of a text with their places, None for an empty one. Raises YAMLError."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Resolver, yaml.Composer, yaml.max_depth = _Resolver, _Composer, _DEEPEST
    return yaml.compose(text)


def round_trip(width: int = 110) -> YAML:
    """Reader and writer that keep comments and order, and quote what would be read as another value."""
    yaml = YAML()
    yaml.Resolver, yaml.width, yaml.preserve_quotes = _Resolver, width, True
    yaml.Representer = _Representer
    return yaml


class _Representer(RoundTripRepresenter):  # type: ignore[misc]
    """Escapes what ends a line for some reader of YAML and not for the writer, such as U+0085."""

    def represent_text(self, text: str) -> ScalarNode:
        broken = first_break(text.replace("\n", " ").replace("\t", " ")) is not None
        return self.represent_scalar(f"{_TAG}str", text, style='"' if broken else None)


_Representer.add_representer(str, _Representer.represent_text)


class _Resolver(VersionedResolver):  # type: ignore[misc]
    """The plain scalars that are no words."""

    @property
    def versioned_resolver(self) -> Any:
        return _BY_FIRST


class _Composer(Composer):  # type: ignore[misc]
    """Refuses what would make a file more than values, and more values than any such file has."""

    _nodes = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.parser.peek_event()
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise ComposerError(None, None, "it holds more values than any such file", event.start_mark)
        if isinstance(event, AliasEvent) or event.anchor is not None:
            raise ComposerError(None, None, "anchors and aliases are not allowed", event.start_mark)
        if event.ctag is not None:
            raise ComposerError(None, None, "tags are not allowed", event.start_mark)
        return super().compose_node(parent, index)


def _value(node: Node, path: KeyPath, lines: dict[KeyPath, int], where: str) -> Any:
    """The value of a node; notes the lines of what is in it."""
    if isinstance(node, SequenceNode):
        lines.update({(*path, place): _line(item) for place, item in enumerate(node.value)})
        return [_value(item, (*path, place), lines, where) for place, item in enumerate(node.value)]
    if isinstance(node, ScalarNode):
        return _scalar(node, path, where)
    table: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, ScalarNode):
            raise invalid(where, _line(key), dotted(path), "a key must be a word")
        inner = (*path, key.value)
        if key.value in table:
            raise invalid(
                where, _line(key), dotted(inner), "this key is there already", "Remove one of them."
            )
        lines[inner] = _line(key)
        table[key.value] = _value(value, inner, lines, where)
    return table


def _scalar(node: ScalarNode, path: KeyPath, where: str) -> Any:
    text, tag = node.value, str(node.tag).removeprefix(_TAG)
    if tag == "null":
        return None
    if tag == "bool":
        return text.lower() == "true"
    if tag not in {"int", "float"}:
        return text
    number = float(text)
    if not math.isfinite(number) or (tag == "int" and len(text) > _LONGEST_NUMBER):
        raise invalid(where, _line(node), dotted(path), "the number is too large")
    return int(text) if tag == "int" else number


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1
