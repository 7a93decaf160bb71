"""The measured series on disk: one row for each chunk of steps, in an SQLite file of bounded size."""

import logging
import threading
import zlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.core.store import Database
from engine_host.protocol.errors import Reason
from engine_host.telemetry.steps import RESOLUTIONS, Resolution, gaps

_log = logging.getLogger(__name__)

LARGEST = 128 << 20
"""Bytes of the file at most; the oldest chunks go first."""
_PAGE = 4096
_MIGRATIONS = (
    """
    CREATE TABLE series (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE chunk (
        step INTEGER NOT NULL,
        series INTEGER NOT NULL,
        number INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (step, series, number)
    ) WITHOUT ROWID;
    """,
)


_DAMAGED = {"SQLITE_NOTADB", "SQLITE_CORRUPT"}


@dataclass(frozen=True)
class Chunk:
    """Some steps of one series; NaN is a gap. Its first step begins at `number` × steps × seconds."""

    resolution: Resolution
    series: str
    number: int
    values: "array[float]"


class SampleStore:
    """Chunks by resolution, series and number; each call may come from any thread and waits for its turn."""

    def __init__(self, path: Path, largest: int = LARGEST) -> None:
        """Open and migrate.

        Raises HostError(not_writable), HostError(disk_full), HostError(database_too_new).
        """
        self.path = path
        self._lock = threading.Lock()
        self._database = Database(path, _MIGRATIONS, one_thread=False)
        self._sql = self._database.sql
        with self._database.clear_errors():
            self._sql.execute(f"PRAGMA max_page_count={max(16, largest // _PAGE)}")

    def write(self, chunks: Sequence[Chunk]) -> None:
        """Save chunks over what is kept of them, and remove what more than fills the span of a resolution.

        The span is of time that was measured: a clock that was wrong for a moment takes nothing with it.
        Where the file is full, what is oldest goes. Raises HostError(disk_full), HostError(not_writable).
        """
        with self._lock:
            try:
                self._write(chunks)
            except HostError as error:
                if error.reason is not Reason.DISK_FULL:
                    raise
                self._drop_oldest()
                self._write(chunks)

    def read(self, resolution: Resolution, first: int, last: int, names: Sequence[str]) -> list[Chunk]:
        """Return the chunks from one number to another, of some series or without names of all.

        Raises HostError(not_writable).
        """
        with self._lock, self._database.clear_errors():
            rows = self._sql.execute(
                "SELECT name, number, body FROM chunk JOIN series ON series.id = chunk.series"
                " WHERE step = ? AND number BETWEEN ? AND ?",
                (resolution.step, first, last),
            ).fetchall()
        wanted = set(names)
        return [
            Chunk(resolution, name, number, _unpacked(body, resolution.chunk))
            for name, number, body in rows
            if not wanted or name in wanted
        ]

    def cut(self, at: float) -> None:
        """Remove all steps after this time. Raises HostError(disk_full), HostError(not_writable)."""
        with self._lock, self._database.transaction():
            for resolution in RESOLUTIONS:
                number, place = divmod(int(at // resolution.step), resolution.chunk)
                self._sql.execute(
                    "DELETE FROM chunk WHERE step = ? AND number > ?", (resolution.step, number)
                )
                rows = self._sql.execute(
                    "SELECT series, body FROM chunk WHERE step = ? AND number = ?", (resolution.step, number)
                ).fetchall()
                for series, body in rows:
                    values = _unpacked(body, resolution.chunk)
                    values[place + 1 :] = gaps(resolution.chunk - place - 1)
                    self._put(resolution, series, number, values)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def _write(self, chunks: Iterable[Chunk]) -> None:
        with self._database.transaction():
            for chunk in chunks:
                self._sql.execute("INSERT OR IGNORE INTO series (name) VALUES (?)", (chunk.series,))
                (series,) = self._sql.execute(
                    "SELECT id FROM series WHERE name = ?", (chunk.series,)
                ).fetchone()
                values = chunk.values[:]
                row = self._sql.execute(
                    "SELECT body FROM chunk WHERE step = ? AND series = ? AND number = ?",
                    (chunk.resolution.step, series, chunk.number),
                ).fetchone()
                if row is not None:
                    # A host before this one measured the beginning of it.
                    for place, old in enumerate(_unpacked(row[0], chunk.resolution.chunk)):
                        if values[place] != values[place]:
                            values[place] = old
                self._put(chunk.resolution, series, chunk.number, values)
            for resolution in RESOLUTIONS:
                self._sql.execute(
                    "DELETE FROM chunk WHERE step = ?1 AND number <= (SELECT DISTINCT number FROM chunk"
                    " WHERE step = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
                    (resolution.step, resolution.chunks),
                )
            self._sql.execute("DELETE FROM series WHERE id NOT IN (SELECT series FROM chunk)")

    def _put(self, resolution: Resolution, series: int, number: int, values: "array[float]") -> None:
        self._sql.execute(
            "INSERT OR REPLACE INTO chunk (step, series, number, body) VALUES (?, ?, ?, ?)",
            (resolution.step, series, number, zlib.compress(values.tobytes(), 1)),
        )

    def _drop_oldest(self) -> None:
        with self._database.transaction():
            for resolution in RESOLUTIONS:
                # A quarter of the time that is kept, so that this is not needed again at once.
                self._sql.execute(
                    "DELETE FROM chunk WHERE step = ?1 AND number <= ("
                    "SELECT min(number) + (max(number) - min(number)) / 4 FROM chunk WHERE step = ?1)",
                    (resolution.step,),
                )


def open_samples(path: Path) -> SampleStore | None:
    """Return the series on the disk, or None where they cannot be kept; the log says why.

    A damaged file is set aside, in the place of one that was set aside before: graphs stop nothing.
    """
    try:
        return SampleStore(path)
    except HostError as error:
        if error.problem.evidence.get("sqlite") not in _DAMAGED:
            _log.warning("The graphs of the past are not kept: %s", error)
            return None
    aside = path.with_name(f"{path.name}.damaged")
    try:
        path.replace(aside)
        for left in ("-wal", "-shm"):
            path.with_name(path.name + left).unlink(missing_ok=True)
        _log.warning("%s was damaged; it is %s now, and the graphs begin anew.", path, aside)
        return SampleStore(path)
    except (OSError, HostError) as error:
        _log.warning("The graphs of the past are not kept: %s", error)
        return None


def _unpacked(body: object, number: int) -> "array[float]":
    """Return the values of a chunk; of a damaged one gaps."""
    values: array[float] = array("d")
    if isinstance(body, bytes):
        try:
            values.frombytes(zlib.decompressobj().decompress(body, 8 * number))
        except (zlib.error, ValueError):
            return gaps(number)
    return values if len(values) == number else gaps(number)
