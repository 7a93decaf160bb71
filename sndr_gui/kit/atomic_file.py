"""Writes the window's own files so that a crash leaves the old or the new one."""

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, content: str) -> None:
    """Write a text beside a file and rename it; a link in its place stays, and what it leads to is replaced.

    Raises OSError when the folder cannot be written.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
