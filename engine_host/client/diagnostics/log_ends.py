"""The ends of log files, however large the files are."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from engine_host.core.outside import files
from engine_host.core.paths import Folders

MOST = 256 << 10
"""Bytes that are read of one log."""
ENGINE_LOGS = "logs/engines/"
"""The beginning of the names of engines' logs in a report."""
_ENGINES = 4
_BUILDS = 2


def log_files(folders: Folders) -> Iterator[tuple[str, Path]]:
    """Yield the logs of a report with their names in it: the host's, those of the newest engines and builds.

    Raises OSError for a folder that cannot be listed.
    """
    if os.path.lexists(host := folders.logs / "host.log"):
        yield "logs/host.log", host
    for path in newest_files(folders.logs / "engines", _ENGINES):
        yield f"{ENGINE_LOGS}{path.name}", path
    for path in newest_files(folders.logs, _BUILDS, prefix="install-"):
        yield f"logs/{path.name}", path
    for path in newest_files(folders.cache / "logs", _BUILDS):
        yield f"logs/builds/{path.name}", path


def end_of_log(path: Path) -> str:
    """Return the last whole lines of a log, of the file that was put aside before it too. Raises OSError."""
    text, size = _end_of_file(path, MOST)
    if size < MOST:
        # Mostly nothing was put aside.
        with contextlib.suppress(OSError):
            text = _end_of_file(path.with_name(f"{path.name}.1"), MOST - size)[0] + text
    return text


def _end_of_file(path: Path, most: int) -> tuple[str, int]:
    """Return the end of a file, from the beginning of a line, and how many bytes the file has."""
    with files.open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - most))
        raw = file.read(most)
    if size > most:
        # The first line may begin in the middle of a key, which nobody would recognize.
        _, broken, raw = raw.partition(b"\n")
        if not broken:
            return f"[one line of more than {most:,} bytes is left out]\n", size
        return f"[{size - len(raw):,} bytes before this are left out]\n{raw.decode(errors='replace')}", size
    return raw.decode(errors="replace"), size


def newest_files(folder: Path, count: int, *, prefix: str = "", suffix: str = ".log") -> list[Path]:
    """Return the files of a folder that were written last. Raises OSError if it cannot be listed."""

    def written(path: Path) -> float:
        try:
            return path.lstat().st_mtime
        except OSError:  # It was removed since it was listed.
            return 0.0

    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    named = [folder / name for name in names if name.startswith(prefix) and name.endswith(suffix)]
    return sorted((path for path in named if path.name != "host.log"), key=written, reverse=True)[:count]
