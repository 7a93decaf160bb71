"""The nodes of a YAML text as ruamel.yaml reads them, and the values that the catalogue takes of them."""

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError, MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.resolver import VersionedResolver

from engine_host.catalog.document import Document, KeyPath, dotted, invalid
from engine_host.catalog.yaml.scalars import BY_FIRST, DEEPEST, MOST_NODES, TAG, TOO_LARGE, value_of
from engine_host.protocol.language import tr
from engine_host.protocol.text import first_break


def parse_nodes(text: str, where: str) -> Document:
    """Return the document in a text of bearable size. Raises HostError(preset_invalid)."""
    try:
        root = compose(text)
    except MaxDepthExceededError as error:
        raise invalid(where, error.problem_mark.line + 1, "", tr("it is nested too deeply")) from error
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        says = ", ".join(part for part in (error.context, error.problem) if part) or tr("it is not YAML")
        raise invalid(where, None if mark is None else mark.line + 1, "", says) from error
    except YAMLError as error:
        raise invalid(where, None, "", tr("it is not YAML: {error}", error=error)) from error
    if not isinstance(root, MappingNode):
        says = tr("it is empty") if root is None else tr("it must be keys and values")
        raise invalid(where, 1 if root is None else _line(root), "", says)
    lines: dict[KeyPath, int] = {}
    return Document(text, _value(root, (), lines, where), lines)


def compose(text: str) -> Any:
    """The nodes of a text with their places, None for an empty one. Raises YAMLError."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Resolver, yaml.Composer, yaml.max_depth = _Resolver, _Composer, DEEPEST
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
        return self.represent_scalar(f"{TAG}str", text, style='"' if broken else None)


_Representer.add_representer(str, _Representer.represent_text)


class _Resolver(VersionedResolver):  # type: ignore[misc]
    """The plain scalars that are no words."""

    @property
    def versioned_resolver(self) -> Any:
        return BY_FIRST


class _Composer(Composer):  # type: ignore[misc]
    """Refuses what would make a file more than values, and more values than any such file has."""

    _nodes = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.parser.peek_event()
        self._nodes += 1
        if self._nodes > MOST_NODES:
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
        found = value_of(node.value, str(node.tag))
        if found is TOO_LARGE:
            raise invalid(where, _line(node), dotted(path), tr("the number is too large"))
        return found
    table: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, ScalarNode):
            raise invalid(where, _line(key), dotted(path), tr("a key must be a word"))
        inner = (*path, key.value)
        if key.value in table:
            raise invalid(
                where, _line(key), dotted(inner), tr("this key is there already"), tr("Remove one of them.")
            )
        lines[inner] = _line(key)
        table[key.value] = _value(value, inner, lines, where)
    return table


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1
