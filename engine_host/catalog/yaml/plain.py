"""Well-formed files of the catalogue, read by libyaml in a tenth of the time.

Whatever is wrong, or might be read otherwise by ruamel.yaml, is left to the reader that says what is wrong.
"""

import re
from typing import Any

from engine_host.catalog.document import Document, KeyPath
from engine_host.catalog.yaml.scalars import MOST_NODES, TAG, TOO_LARGE, tag_of, value_of

# Half of what is allowed, where both readers count alike.
_DEEPEST = 16
# YAML 1.1 and 1.2 differ in tabs, more ends of lines, marks of byte order, directives, ends of documents.
_BOTH_READ = re.compile(r"[\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]*")
_MARKS = re.compile(r"^(?:%|---|\.\.\.)", re.MULTILINE)


class _LeaveError(Exception):
    """The other reader has to look at this text."""


class TooManyError(Exception):
    """It holds more values than any such file; `line` has the first of those."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def parse_plain(text: str) -> Document | None:
    """Return the document in a text of bearable size, None for one that the other reader has to look at.

    Raises TooManyError.
    """
    if not _BOTH_READ.fullmatch(text) or _MARKS.search(text):
        return None
    import yaml

    if not yaml.__with_libyaml__:
        return None
    events = _Events(yaml, text)
    try:
        return Document(text, events.document(), events.lines)
    except (_LeaveError, yaml.YAMLError):
        return None


class _Events:
    """The events that libyaml finds in a text, as values with their lines."""

    def __init__(self, yaml: Any, text: str) -> None:
        self._yaml = yaml
        self._parser = yaml.CBaseLoader(text)
        self._left = MOST_NODES
        self.lines: dict[KeyPath, int] = {}

    def document(self) -> dict[str, Any]:
        """Return the only document. Raises _LeaveError, TooManyError, YAMLError."""
        next_event, yaml = self._parser.get_event, self._yaml
        next_event()
        if not isinstance(next_event(), yaml.DocumentStartEvent):
            raise _LeaveError
        event = next_event()
        if not isinstance(event, yaml.MappingStartEvent):
            raise _LeaveError
        data: dict[str, Any] = self._value(event, ())
        next_event()
        if not isinstance(next_event(), yaml.StreamEndEvent):
            raise _LeaveError
        return data

    def _value(self, event: Any, path: KeyPath) -> Any:
        yaml = self._yaml
        self._left -= 1
        # An alias has no tag to ask for.
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None or event.tag is not None:
            raise _LeaveError
        if len(path) > _DEEPEST:
            raise _LeaveError
        if self._left < 0:
            # Both readers count alike, and the other one would need seconds for it.
            raise TooManyError(event.start_mark.line + 1)
        if isinstance(event, yaml.ScalarEvent):
            # Of texts of several lines libyaml takes more than the other reader does.
            if event.style in {"|", ">"}:
                raise _LeaveError
            found = value_of(event.value, tag_of(event.value) if event.implicit[0] else f"{TAG}str")
            if found is TOO_LARGE:
                raise _LeaveError
            return found
        return self._table(path) if isinstance(event, yaml.MappingStartEvent) else self._list(path)

    def _table(self, path: KeyPath) -> dict[str, Any]:
        table: dict[str, Any] = {}
        while not isinstance(key := self._parser.get_event(), self._yaml.MappingEndEvent):
            if not isinstance(key, self._yaml.ScalarEvent) or key.value in table:
                raise _LeaveError
            # As a value, for what no key may have either.
            self._value(key, path)
            inner = (*path, key.value)
            self.lines[inner] = key.start_mark.line + 1
            table[key.value] = self._value(self._parser.get_event(), inner)
        return table

    def _list(self, path: KeyPath) -> list[Any]:
        items: list[Any] = []
        while not isinstance(item := self._parser.get_event(), self._yaml.SequenceEndEvent):
            inner = (*path, len(items))
            self.lines[inner] = item.start_mark.line + 1
            items.append(self._value(item, inner))
        return items
