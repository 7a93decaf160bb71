"""A way past the server's `send` for a piece of a stream: no coroutine, task or turn of the loop in between.

Half of what a token cost here was to wake the task that passes it on. A server of ours offers this way as an
extension of ASGI; below any other each piece goes through `send`.
"""

from collections.abc import Callable, Mapping
from typing import Any

WritePiece = Callable[[bytes], bool]
"""Writes a piece of a body that has begun; False where `send` has to: the client is slow, or gone."""

EXTENSION = "sndr.write_piece"


def offered(scope: Mapping[str, Any]) -> WritePiece | None:
    """Return the server's way for pieces; None where it has none."""
    extensions = scope.get("extensions") or {}
    found: WritePiece | None = extensions.get(EXTENSION)
    return found
