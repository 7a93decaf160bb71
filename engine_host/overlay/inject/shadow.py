"""Edited sources as files of their own, so that caches, tracebacks and inspect see what really runs."""

import contextlib
import hashlib
import os
import re

# The module's own name for its file; that of another module (`torch.__file__`) and a string are not meant.
_OWN_FILE = re.compile(r"""(?<![\w."'])__file__(?!\w)""")


def for_shadow(text: str) -> str:
    """A source as it is loaded from elsewhere: paths that it makes from `__file__` lead to its package."""
    return _OWN_FILE.sub("__sndr_origin__", text)


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
