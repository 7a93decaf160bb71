"""A model that is there already: its size, its parts, and where its files really are."""

from __future__ import annotations

import os
import re
from typing import Any

_SPLIT = re.compile(r"(.{1,240})-([0-9]{5})-of-([0-9]{5})\.gguf")
_MOST_PARTS, _MOST_FILES = 999, 20_000


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
    }


def _parts(path: str) -> list[str]:
    """All files of a model in several, by the name of its first."""
    found = _SPLIT.fullmatch(os.path.basename(path))
    if found is None or int(found.group(2)) != 1 or not 1 <= int(found.group(3)) <= _MOST_PARTS:
        return [path]
    stem, count = os.path.join(os.path.dirname(path), found.group(1)), int(found.group(3))
    return ["%s-%05d-of-%05d.gguf" % (stem, number, count) for number in range(1, count + 1)]
