"""Edited sources as files of their own, so that caches, tracebacks and inspect see what really runs."""

import contextlib
import hashlib
import os


def digest(text: str) -> str:
    """SHA-256 of a source text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def shadow_file(folder: str, module: str, text: str) -> str:
    """The file that holds this text of a module, written if it is not there. Raises OSError.

    Its name comes from the content: a process that finds it finds what it would have written, and the
    compile caches, which are keyed by files, see a change exactly when there is one.
    """
    path = os.path.join(folder, digest(text)[:20], *module.split(".")) + ".py"
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        part = f"{path}.{os.getpid()}"
        with open(part, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.replace(part, path)
    else:
        # Used again: files of which this was long ago are removed by the host.
        with contextlib.suppress(OSError):
            os.utime(os.path.join(folder, digest(text)[:20]))
    return path
