"""YAML as the catalogue takes it: one document of plain values, each with the line it stands on.

Scalars are read as YAML 1.2 has them (`no` and `1_0` are words), a key that comes twice is an error, and
anchors, aliases and tags are refused: a preset from somebody else may not do more than hold values.
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine_host.catalog.document import Document, invalid
from engine_host.catalog.yaml.plain import TooManyError, parse_plain
from engine_host.core.outside.files import open_regular
from engine_host.protocol.language import tr

# Forty times the largest that ships: what is wrong in one is found by ruamel.yaml, about 50 KB a second.
MAX_BYTES = 1 << 18


def read(path: Path, where: str) -> Document:
    """The document of a file. Raises HostError(preset_invalid)."""
    try:
        with open_regular(path) as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise invalid(
            where,
            None,
            "",
            tr("it cannot be read: {error}", error=error.strerror),
            tr("Make the file readable for you."),
        ) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise invalid(where, line, "", tr("it is not UTF-8 text"), tr("Save it as UTF-8.")) from error
    return parse(text, where)


def parse(text: str, where: str) -> Document:
    """The document in a text. Raises HostError(preset_invalid)."""
    if len(text.encode()) > MAX_BYTES:
        raise invalid(where, None, "", tr("it is larger than any such file"), tr("Choose the right file."))
    try:
        document = parse_plain(text)
    except TooManyError as error:
        # In the words of the other reader.
        raise invalid(where, error.line, "", "it holds more values than any such file") from error
    if document is not None:
        return document
    # The library takes a tenth of a second to import, for which no start of the host waits.
    from engine_host.catalog.yaml.nodes import parse_nodes

    return parse_nodes(text, where)


def dump(data: Mapping[str, Any]) -> str:
    """Return values as YAML in our own form, which `parse` reads back as the same values."""
    from engine_host.catalog.yaml.nodes import round_trip

    written = io.StringIO()
    round_trip().dump(dict(data), written)
    return written.getvalue()
