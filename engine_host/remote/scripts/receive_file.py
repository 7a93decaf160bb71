"""Runs on another machine: writes a file that comes on standard input, goes on with a part, checks the whole.

The first line is JSON: {"path", "size", "sha256", "mode", "ask" or "from"}. With `ask` it tells what is there
already; else so many bytes follow as are missing from `from` on. With {"folder", "names"} it tells the sizes
of what is there under these names, and the free space. The answer is one line of JSON.
Standard library only, for any Python from 3.6 on.
"""

import errno
import hashlib
import json
import os
import sys

_PIECE = 1 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def hash_of(path: str) -> str:
    """Return the SHA-256 of a file."""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(_PIECE), b""):
            found.update(piece)
    return found.hexdigest()


def there(path: str, part: str, asked: "dict[str, object]") -> "dict[str, object]":
    """Return what there is of the file: all of it, or a part with its hash."""
    if os.path.isfile(path) and os.path.getsize(path) == asked["size"] and hash_of(path) == asked["sha256"]:
        return {"done": True, "path": os.path.abspath(path)}
    kept = os.path.getsize(part) if os.path.isfile(part) and not os.path.islink(part) else 0
    # A longer one is no part of this file: hashing it would take time for nothing.
    if 0 < kept <= int(str(asked["size"])):
        return {"size": os.path.getsize(part), "sha256": hash_of(part)}
    return {"size": 0}


def receive(path: str, part: str, asked: "dict[str, object]") -> "dict[str, object]":
    """Write what comes, and put it in its place if it is what it should be."""
    start, size = int(str(asked["from"])), int(str(asked["size"]))
    os.makedirs(os.path.dirname(part), mode=0o755, exist_ok=True)
    free = os.statvfs(os.path.dirname(part))
    if size - start > free.f_bavail * free.f_frsize:
        return {"error": "disk_full", "free": free.f_bavail * free.f_frsize, "needed": size - start}
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(part, flags, 0o600), "r+b") as file:
        file.seek(start)
        file.truncate()
        left = size - start
        while left:
            piece = sys.stdin.buffer.read(min(left, _PIECE))
            if not piece:
                return {"error": "interrupted", "missing": left}
            file.write(piece)
            left -= len(piece)
        file.flush()
        os.fsync(file.fileno())
    if hash_of(part) != asked["sha256"]:
        os.unlink(part)
        return {"error": "damaged"}
    os.chmod(part, int(str(asked["mode"])))
    os.replace(part, path)
    return {"done": True, "path": os.path.abspath(path)}


def sizes(folder: str, names: "list[str]") -> "dict[str, object]":
    """Return the bytes of each file and of its part, None for none, and what the disk has free.

    What is there under its name and is no file has -1; a folder is refused, as nothing can take its place.
    """
    folder = os.path.abspath(os.path.join(os.path.expanduser("~"), os.path.expanduser(folder)))
    found = []
    for name in names:
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            return {"error": "refused", "text": path + " is a folder"}
        kept = [os.path.getsize(one) if os.path.isfile(one) else None for one in (path, part_of(path))]
        if kept[0] is None and os.path.lexists(path):
            kept[0] = -1
        found.append(kept)
    place = folder
    while not os.path.isdir(place) and os.path.dirname(place) != place:
        if os.path.lexists(place):
            return {"error": "refused", "text": place + " is no folder"}
        place = os.path.dirname(place)
    if not os.access(place, os.W_OK | os.X_OK):
        return {"error": "refused", "text": place + " is not yours to write to"}
    disk = os.statvfs(place)
    return {"folder": folder, "files": found, "free": disk.f_bavail * disk.f_frsize}


def part_of(path: str) -> str:
    """Return where a file is kept until it is whole."""
    return os.path.join(os.path.dirname(path), "." + os.path.basename(path) + ".sndr-part")


def main() -> "dict[str, object]":
    """Do what the first line asks for."""
    asked = json.loads(sys.stdin.buffer.readline().decode("utf-8"))
    if "folder" in asked:
        return sizes(asked["folder"], asked["names"])
    path = os.path.join(os.path.expanduser("~"), os.path.expanduser(asked["path"]))
    part = part_of(path)
    try:
        return there(path, part, asked) if asked.get("ask") else receive(path, part, asked)
    except OSError as error:
        if error.errno in _FULL:
            if os.path.exists(part):
                os.unlink(part)
            return {"error": "disk_full"}
        where = error.filename2 or error.filename
        return {"error": "refused", "text": f"{where}: {error.strerror}" if where else str(error)}


if __name__ == "__main__":
    # A shell's start files may have printed half a line before.
    sys.stdout.write("\n" + json.dumps(main()) + "\n")
