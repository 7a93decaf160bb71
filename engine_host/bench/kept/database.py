"""The SQLite file of the bench lab: runs with their samples, and sweeps; files of earlier versions move in.

A run is one row of what is known of it, as JSON, with its samples beside it in pieces of their own, packed,
so that a list of runs reads none of them.
"""

import contextlib
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from engine_host.bench.kept.under_way import seen
from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.core.outside.run_file import MOST_OF_RUN
from engine_host.core.store import Database
from engine_host.protocol.base import Wire
from engine_host.protocol.bench.lab import LabRun, Sample
from engine_host.protocol.bench.sweeps import LabSweep
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

LARGEST = 1 << 30
"""Bytes of the file at most, or what there was; then a new run takes the place of the oldest.

Those go that are no baselines, and the new run names them. What moves in from earlier versions has no bound.
"""
SWEEPS = "sweeps"
FILE = "runs.db"
_MIGRATIONS = (
    """
    CREATE TABLE run (
        id TEXT PRIMARY KEY,
        workload TEXT NOT NULL,
        engine TEXT NOT NULL,
        model TEXT NOT NULL,
        started_at REAL NOT NULL,
        complete INTEGER NOT NULL,
        baseline INTEGER NOT NULL,
        about TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE samples (
        run TEXT PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
        body BLOB NOT NULL
    );
    CREATE TABLE sweep (id TEXT PRIMARY KEY, started_at REAL NOT NULL, about TEXT NOT NULL) WITHOUT ROWID;
    """,
)
RUN_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[a-z0-9-]{1,40}-[0-9a-f]{4}")
SWEEP_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[a-z]+-[0-9a-f]{4}")


class LabFile(Database):
    """The file itself; what can be read of a damaged one can be saved."""

    salvage = Fix(
        text="Read what can be read into a new file; the damaged one stays beside it.",
        command="sndr bench repair",
    )


class LabDatabase:
    """The runs and sweeps of one data folder; of one thread, and closed by `opened`."""

    def __init__(self, folder: Path, name: str = FILE) -> None:
        """Open and migrate.

        Raises HostError(not_writable), HostError(disk_full), HostError(database_too_new).
        """
        self._folder = folder
        self._database = LabFile(folder / name, _MIGRATIONS)
        self._sql = self._database.sql
        with self._database.clear_errors():
            # An hour of measuring is in it: it outlives a loss of power too.
            self._sql.execute("PRAGMA synchronous=FULL")
            self._sql.execute("PRAGMA foreign_keys=ON")

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def ids(self, *, sweeps: bool = False) -> list[str]:
        """Return the names of all runs or sweeps, newest first."""
        with self._database.clear_errors():
            rows = self._sql.execute(f"SELECT id FROM {'sweep' if sweeps else 'run'}").fetchall()
        return sorted((str(row[0]) for row in rows), reverse=True)

    def run(self, name: str, *, samples: bool = True) -> LabRun:
        """Return a run, with its samples or without. Raises ValueError for a damaged one."""
        with self._database.clear_errors():
            row = self._sql.execute(
                "SELECT about, baseline, body FROM run LEFT JOIN samples ON samples.run = run.id"
                " WHERE id = ? AND length(about) <= ?"
                if samples
                else "SELECT about, baseline, NULL FROM run WHERE id = ? AND length(about) <= ?",
                (name, MOST_OF_RUN),
            ).fetchone()
        if row is None:
            raise ValueError("it is too large, or not there")
        about, baseline, body = row
        run = LabRun.model_validate_json(about)
        if run.id != name:
            raise ValueError("it is not the run of its name")
        asked = _Samples.model_validate_json(_unpacked(body)).samples if samples else ()
        return seen(run).model_copy(update={"baseline": bool(baseline), "samples": asked})

    def save_run(self, run: LabRun) -> LabRun:
        """Keep a run, in place of what was known of it; as it is kept, with the names of those that went.

        Raises HostError(disk_full), HostError(not_writable).
        """
        with self._database.transaction():
            body = _packed(run)
            run = self._with_room(run, len(body))
            self._put(run, body)
        return run

    def try_out(self, what: LabRun | LabSweep) -> None:
        """Make sure that a run or a sweep could be kept, and leave no trace of it.

        Raises HostError(disk_full), HostError(not_writable) also for a damaged file.
        """
        with contextlib.suppress(_TriedError), self._database.transaction():
            if isinstance(what, LabRun):
                self._put(what, _packed(what))
            else:
                self._put_sweep(what)
            raise _TriedError

    def take_rows(self, table: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Take rows of a damaged file as they are. Raises HostError(disk_full), HostError(not_writable)."""
        for row in rows:
            with self._database.transaction():
                self._sql.execute(
                    f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(row))})",
                    row,
                )

    def mark(self, run: LabRun, others: list[str], *, on: bool) -> None:
        """Make a run a baseline or none, and others none. Raises HostError(disk_full, not_writable)."""
        with self._database.transaction():
            for other in others:
                self._sql.execute("UPDATE run SET baseline = 0 WHERE id = ?", (other,))
            self._sql.execute("UPDATE run SET baseline = ? WHERE id = ?", (on, run.id))

    def is_running(self, name: str) -> bool:
        """Tell whether a run is being measured; of one that cannot be read nobody is at it."""
        try:
            return self.run(name, samples=False).measuring is not None
        except ValueError:
            return False

    def remove_run(self, name: str) -> None:
        """Remove a run, also one that cannot be read. Raises HostError(not_writable)."""
        with self._database.transaction():
            self._sql.execute("DELETE FROM run WHERE id = ?", (name,))

    def sweep(self, name: str) -> LabSweep:
        """Return a sweep. Raises ValueError for a damaged one."""
        with self._database.clear_errors():
            row = self._sql.execute("SELECT about FROM sweep WHERE id = ?", (name,)).fetchone()
        sweep = LabSweep.model_validate_json("" if row is None else row[0])
        if sweep.id != name or not sweep.values:
            raise ValueError("it is not the sweep of its name")
        return seen(sweep)

    def save_sweep(self, sweep: LabSweep) -> None:
        """Keep a sweep, in place of what was known of it. Raises HostError(disk_full, not_writable)."""
        with self._database.transaction():
            self._put_sweep(sweep)

    def move_in(self) -> None:
        """Take over the files of earlier versions; each goes once it is in here, and a damaged one stays."""
        for path in _old_files(self._folder, RUN_ID):
            with contextlib.suppress(OSError, ValueError):
                run = LabRun.model_validate_json(files.read(path, MOST_OF_RUN))
                if run.id != path.stem:
                    continue
                with self._database.transaction():
                    if not self._has("run", run.id):
                        self._put(run, _packed(run))
                path.unlink(missing_ok=True)
        for path in _old_files(self._folder / SWEEPS, SWEEP_ID):
            with contextlib.suppress(OSError, ValueError):
                sweep = LabSweep.model_validate_json(files.read(path, MOST_OF_RUN))
                if sweep.id != path.stem or not sweep.values:
                    continue
                with self._database.transaction():
                    if not self._has("sweep", sweep.id):
                        self._put_sweep(sweep)
                path.unlink(missing_ok=True)

    def _has(self, table: str, name: str) -> bool:
        return self._sql.execute(f"SELECT 1 FROM {table} WHERE id = ?", (name,)).fetchone() is not None

    def _put(self, run: LabRun, body: bytes) -> None:
        bare = run.model_copy(update={"samples": ()})
        engine = run.engine
        self._sql.execute(
            "INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
            " complete = excluded.complete, baseline = excluded.baseline, about = excluded.about",
            (
                run.id,
                str(run.workload),
                engine.engine,
                engine.model,
                run.started_at,
                run.complete,
                run.baseline,
                bare.model_dump_json(),
            ),
        )
        self._sql.execute("INSERT OR REPLACE INTO samples VALUES (?, ?)", (run.id, body))

    def _put_sweep(self, sweep: LabSweep) -> None:
        self._sql.execute(
            "INSERT OR REPLACE INTO sweep VALUES (?, ?, ?)",
            (sweep.id, sweep.started_at, sweep.model_dump_json()),
        )

    def _with_room(self, run: LabRun, size: int) -> LabRun:
        """Remove as many of the oldest runs, but no baselines, as a new one needs; it has their names."""
        # A file that is larger already, as one into which others moved, is not made smaller.
        most = max(LARGEST, self._used())
        there = self._sql.execute("SELECT length(body) FROM samples WHERE run = ?", (run.id,)).fetchone()
        more = max(0, size - (int(there[0] or 0) if there is not None else 0))
        gone = list(run.replaced)
        while more and self._used() + more > most:
            oldest = self._sql.execute(
                "SELECT id FROM run WHERE baseline = 0 AND id != ? ORDER BY started_at LIMIT 1", (run.id,)
            ).fetchone()
            if oldest is None:
                break
            self._sql.execute("DELETE FROM run WHERE id = ?", oldest)
            gone.append(str(oldest[0]))
        return run.model_copy(update={"replaced": tuple(gone)})

    def _used(self) -> int:
        pages, free, size = (
            int(self._sql.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size


class _Samples(Wire):
    samples: tuple[Sample, ...] = ()


class _TriedError(Exception):
    """It would have worked; the transaction is taken back."""


def _packed(run: LabRun) -> bytes:
    return zlib.compress(_Samples(samples=run.samples).model_dump_json().encode(), 6)


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[LabDatabase]:
    """The data base of a folder, with what earlier versions left there.

    Raises HostError(not_writable), HostError(disk_full), HostError(database_too_new).
    """
    database = LabDatabase(folder)
    try:
        database.move_in()
        yield database
    finally:
        database.close()


@contextlib.contextmanager
def opened_to_read(folder: Path) -> Iterator[LabDatabase | None]:
    """The data base of a folder as `opened`; None where nothing is kept, and no file is made."""
    if _is_kept(folder):
        with opened(folder) as database:
            yield database
    else:
        yield None


def damaged_files(folder: Path, ids: Sequence[str], names: re.Pattern[str] = RUN_ID) -> list[str]:
    """Return the names of files of earlier versions that could not be read and so are none of these."""
    return sorted((path.name for path in _old_files(folder, names) if path.stem not in ids), reverse=True)


def not_readable(what: str, name: str, error: Exception) -> HostError:
    """Return what is said of a run or a sweep that is damaged."""
    return HostError(
        Reason.BAD_REQUEST,
        tr("The {what} {name} cannot be read.", what=what, name=name),
        cause="It is damaged, or was written by a newer version.",
        fix=Fix(text="Remove it, and measure again.", command=f"sndr bench remove {name}")
        if what == "run"
        else Fix(
            text="Its runs are still in the list; sweep again for its table.",
            command="sndr bench list",
        ),
        evidence={"error": str(error)[:400]},
    )


def _is_kept(folder: Path) -> bool:
    return (
        (folder / FILE).exists()
        or bool(_old_files(folder, RUN_ID))
        or bool(_old_files(folder / SWEEPS, SWEEP_ID))
    )


def _old_files(folder: Path, names: re.Pattern[str]) -> list[Path]:
    found = folder.glob("*.json") if folder.is_dir() else ()
    return sorted(path for path in found if names.fullmatch(path.stem))


def _unpacked(body: object) -> str:
    """Return packed JSON as text. Raises ValueError for what is none, or too much."""
    if not isinstance(body, bytes):
        raise ValueError("its samples are missing")
    try:
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(body, MOST_OF_RUN)
    except zlib.error as error:
        raise ValueError(f"its samples are damaged: {error}") from error
    if not unpacking.eof:
        raise ValueError("its samples are cut off, or too many")
    return text.decode("utf-8", "replace")
