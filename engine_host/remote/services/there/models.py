"""A model that is there already: its size, its parts, and where its files really are."""

from __future__ import annotations

import hashlib
import os
import re
from typing import Any

_SPLIT = re.compile(r"(.{1,240})-([0-9]{5})-of-([0-9]{5})\.gguf")
_MOST_PARTS, _MOST_FILES, _MOST_SOURCES = 999, 20_000, 900
_SMALL = 32 << 20
"""Bytes of a file whose SHA-256 takes no time; a large one in a hub's cache has it for a name."""


def model(given: dict[str, Any]) -> dict[str, Any]:
    """Tell of a file or a folder: what a container has to mount for it, as links lead outside of it."""
    path = os.path.normpath(given["path"])
    name = os.path.basename(path)
    if not os.path.isdir(path):
        parts = _parts(path)
        sizes = [os.path.getsize(one) for one in parts if os.path.isfile(one)]
        return {
            "files": parts,
            "mounts": [{"source": os.path.realpath(one), "name": os.path.basename(one)} for one in parts],
            "inside": name,
            "size": sum(sizes) if len(sizes) == len(parts) else None,
            "sources": [_source(one) for one in parts],
        }
    real = os.path.realpath(path)
    reached, size = {real}, 0
    count = 0
    for where, _, names in os.walk(real):
        for one in names:
            file = os.path.realpath(os.path.join(where, one))
            if os.path.isfile(file):
                reached.add(os.path.dirname(file))
                size += os.path.getsize(file)
        count += len(names)
        if count > _MOST_FILES:
            break
    root = os.path.commonpath(sorted(reached))
    together = root == real or root.count(os.sep) >= 2
    return {
        "files": [path],
        "mounts": [{"source": root, "name": os.path.basename(root)}] if together else [],
        "inside": os.path.relpath(real, os.path.dirname(root)),
        "size": size if size and count <= _MOST_FILES else None,
        "sources": [_source(one) for one in _files_in(path)],
    }


def _files_in(folder: str) -> list[str]:
    """The files of a model that lies in a folder; none where there are too many to be of one."""
    found = [os.path.join(where, one) for where, _, names in os.walk(folder) for one in names]
    return sorted(found) if len(found) <= _MOST_SOURCES else []


def _source(path: str) -> dict[str, Any]:
    """Tell where a file really lies, by which its source may be known, and what it is now."""
    real = os.path.realpath(path)
    size = os.path.getsize(real) if os.path.isfile(real) else None
    digest = None
    if size is not None and size <= _SMALL:
        with open(real, "rb") as file:
            digest = hashlib.sha256(file.read(_SMALL + 1)).hexdigest()
    place = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return {"path": path, "place": place, "blob": os.path.basename(real), "size": size, "sha256": digest}


def _parts(path: str) -> list[str]:
    """All files of a model in several, by the name of its first."""
    found = _SPLIT.fullmatch(os.path.basename(path))
    if found is None or int(found.group(2)) != 1 or not 1 <= int(found.group(3)) <= _MOST_PARTS:
        return [path]
    stem, count = os.path.join(os.path.dirname(path), found.group(1)), int(found.group(3))
    return ["%s-%05d-of-%05d.gguf" % (stem, number, count) for number in range(1, count + 1)]
