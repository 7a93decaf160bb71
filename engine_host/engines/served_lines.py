"""The lines of an engine's log that reach the disk while it serves: none may hold text of a request."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class ServedLines:
    """The things that an engine says of itself; every other line is counted and not written down.

    `prefix` is a pattern of what stands before each message: time, level, place; it is kept. A template is a
    whole message with every number as `#` and every run of blanks as one. A pattern fits a whole message.
    `left_out` fits whole lines that are not even counted: lists that are written anew with each request.
    """

    prefix: str = ""
    templates: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    left_out: str = ""

    def written(self) -> bytes:
        """Return it as the writer of a log reads it."""
        return json.dumps(asdict(self)).encode()


NO_LINES = ServedLines()
"""Of an engine that nobody knows: nothing is written down while it serves."""


def templates_of(text: str) -> tuple[str, ...]:
    """Return the templates of a table, one a line."""
    return tuple(" ".join(line.split()) for line in text.splitlines() if line.strip())
