"""Log lines from the files on disk: of engines of earlier hosts, and of everything when no host runs."""

import itertools
from collections import deque
from pathlib import Path

from engine_host.core.log_buffer import severity_of
from engine_host.core.paths import Folders
from engine_host.protocol.base import Severity
from engine_host.protocol.logs import LogLine, LogPage

_RANK = {Severity.INFO: 0, Severity.WARNING: 1, Severity.ERROR: 2}


def log_files(folders: Folders) -> dict[str, Path]:
    """By source the files that hold its lines: the host's first, then those of engines, newest first."""

    def written(path: Path) -> float:
        try:
            return path.stat().st_mtime
        except OSError:  # It was removed since it was listed.
            return 0.0

    found = {"host": folders.logs / "host.log"} if (folders.logs / "host.log").is_file() else {}
    engines = sorted((folders.logs / "engines").glob("*.log"), key=written, reverse=True)
    return found | {path.stem: path for path in engines}


def lines_of_files(folders: Folders, source: str | None, level: str, count: int) -> LogPage:
    """The last lines of a source's file; without a source, of the host's and of the newest engine's.

    `at` of each line is when its file was last written: engines' lines say no time of their own. A file that
    cannot be read has no lines.
    """
    files = log_files(folders)
    selected = list(files)[:2] if source is None else [source]
    lines: list[LogLine] = []
    for name in selected:
        if name in files:
            lines += _tail(name, files[name], Severity(level), count)
    return LogPage(seq=0, lines=tuple(lines), sources=tuple(files))


def _tail(source: str, path: Path, level: Severity, count: int) -> list[LogLine]:
    kept: deque[LogLine] = deque(maxlen=count)
    numbers = itertools.count(1)
    # A full file is put aside, and its lines go on in another one.
    for part in (path.with_name(f"{path.name}.1"), path):
        try:
            at = part.stat().st_mtime
            with part.open(encoding="utf-8", errors="replace") as file:
                for text in file:
                    number, severity = next(numbers), severity_of(text)
                    if _RANK[severity] >= _RANK[level]:
                        line = LogLine(
                            source=source, number=number, at=at, severity=severity, text=text.rstrip()
                        )
                        kept.append(line)
        except OSError:
            continue
    return list(kept)
