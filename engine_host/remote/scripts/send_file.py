"""Runs on another machine: prints a file from where on it is missing, and the SHA-256 of the whole.

The first line of its input is JSON: {"path", "mark"} with `only_hash`, or with the `size` and the `sha256` of
the part that is kept already. It answers the mark on a line of its own, a line of JSON, the bytes, and a line
of JSON with the hash. Standard library only, for any Python from 3.6 on; it changes nothing.
"""

import hashlib
import json
import os
import stat
import sys

_PIECE = 1 << 18


def answer(told: "dict[str, object]") -> None:
    """Print one line."""
    sys.stdout.buffer.write(json.dumps(told).encode() + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    """Do what the first line asks for."""
    asked = json.loads(sys.stdin.buffer.readline().decode("utf-8"))
    path = os.path.join(os.path.expanduser("~"), os.path.expanduser(asked["path"]))
    # A shell's start files may have printed half a line before.
    sys.stdout.buffer.write(b"\n" + asked["mark"].encode() + b"\n")
    try:
        # A pipe would wait for ever.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        return answer({"error": "missing" if missing else "refused", "text": str(error)})
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            return answer({"error": "refused", "text": "it is no regular file"})
        found, size, start = hashlib.sha256(), about.st_size, int(asked.get("size", 0))
        if not 0 < start <= size:
            start = 0
        left = start
        while left:
            piece = file.read(min(left, _PIECE))
            if not piece:
                break
            found.update(piece)
            left -= len(piece)
        if left or (start and found.hexdigest() != asked.get("sha256")):
            # What is kept is no beginning of this file.
            found, start = hashlib.sha256(), 0
            file.seek(0)
        answer({"size": size, "from": start})
        left, whole = size - start, True
        while left:
            piece = file.read(min(left, _PIECE))
            if not piece:
                whole = False
                break
            found.update(piece)
            if not asked.get("only_hash"):
                sys.stdout.buffer.write(piece)
            left -= len(piece)
        while left and not asked.get("only_hash"):
            # It became shorter meanwhile: as much comes as was announced, and no hash.
            sys.stdout.buffer.write(bytes(min(left, _PIECE)))
            left -= min(left, _PIECE)
    return answer({"sha256": found.hexdigest() if whole else ""})


if __name__ == "__main__":
    main()
