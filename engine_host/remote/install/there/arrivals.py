"""Files that arrive there, in pieces."""

from __future__ import annotations

import hashlib
import os
import sys
from typing import Any

from engine_host.remote.install.there.places import Failed, Places


def receive(asked: dict[str, Any]) -> dict[str, Any]:
    """Write the next piece of a file, which follows on standard input."""
    path = _path(asked["name"])
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(file).st_size > asked["at"]:
            os.ftruncate(file, asked["at"])
        os.lseek(file, asked["at"], os.SEEK_SET)
        left = asked["size"]
        while left:
            piece = sys.stdin.buffer.read(min(left, 1 << 20))
            if not piece:
                raise Failed("install_failed", "The connection ended in the middle of a file.", left=left)
            left -= len(piece)
            while piece:
                piece = piece[os.write(file, piece) :]
        os.fsync(file)
    finally:
        os.close(file)
    return {"at": asked["at"] + asked["size"]}


def received(asked: dict[str, Any]) -> dict[str, Any]:
    """Tell whether a file is what was sent; one that is not is removed."""
    path = _path(asked["name"])
    digest = hashlib.sha256()
    with open(path, "rb") as content:
        for block in iter(lambda: content.read(1 << 20), b""):
            digest.update(block)
    right = digest.hexdigest() == asked["sha256"]
    if not right:
        os.remove(path)
    return {"right": right}


def _path(name: str) -> str:
    if not name or name.startswith(".") or os.path.basename(name) != name or "\0" in name:
        raise Failed("bad_request", "That is no name of a file.", name=name)
    return os.path.join(Places().incoming, name)
