"""Save what can be read of a damaged file of runs into a new one; the damaged one stays beside it."""

import contextlib
import sqlite3
import time
from pathlib import Path

from engine_host.bench.kept.database import FILE, LabDatabase
from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.protocol.bench.lab import LabRepair
from engine_host.protocol.errors import Fix, Reason

_NEW = "runs.new.db"
_BESIDE = ("", "-wal", "-shm")
_KEYS = {"run": "id", "samples": "run", "sweep": "id"}

_Rows = dict[str, tuple[object, ...]]


def repair(folder: Path) -> LabRepair:
    """Take what can be read of a damaged file into a new one, and put the damaged one aside.

    Raises HostError(not_found) without a file, HostError(conflict) for a whole one, and
    HostError(not_writable), HostError(disk_full).
    """
    path = folder / FILE
    if not path.exists():
        raise HostError(
            Reason.NOT_FOUND,
            "Nothing was measured here yet.",
            fix=Fix(text="Measure first.", command="sndr bench run quick"),
        )
    sql = sqlite3.connect(path, isolation_level=None)
    try:
        if _is_whole(sql):
            raise HostError(
                Reason.CONFLICT,
                "The file of runs is whole: there is nothing to repair.",
                fix=Fix(text="See what is in it.", command="sndr bench list"),
                evidence={"path": str(path)},
            )
        found = {table: _rows(sql, table, key) for table, key in _KEYS.items()}
    finally:
        sql.close()
    # What has samples and no more was a run, of which nothing is known.
    found["samples"] = {name: row for name, row in found["samples"].items() if name in found["run"]}
    try:
        for ending in _BESIDE:
            (folder / f"{_NEW}{ending}").unlink(missing_ok=True)
        fresh = LabDatabase(folder, _NEW)
        try:
            for table, rows in found.items():
                fresh.take_rows(table, rows.values())
        finally:
            fresh.close()
        aside = folder / f"{path.stem}.damaged-{time.strftime('%Y%m%d-%H%M%S')}.db"
        for ending in _BESIDE:
            with contextlib.suppress(FileNotFoundError):
                Path(f"{path}{ending}").rename(f"{aside}{ending}")
        (folder / _NEW).rename(path)
    except OSError as error:
        raise atomic_file.saving_failed(path, error) from error
    return LabRepair(
        runs=len(found["run"]),
        without_samples=len(found["run"]) - len(found["samples"]),
        sweeps=len(found["sweep"]),
        aside=str(aside),
    )


def _is_whole(sql: sqlite3.Connection) -> bool:
    try:
        told = sql.execute("PRAGMA integrity_check").fetchall()
        for table in _KEYS:
            sql.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()
    except (sqlite3.Error, UnicodeDecodeError):
        return False
    return told == [("ok",)]


def _rows(sql: sqlite3.Connection, table: str, key: str) -> _Rows:
    """Return the rows of a table up to what is damaged, from both of its ends."""
    found: _Rows = {}
    for order in (f"{key}", f"{key} DESC", "rowid", "rowid DESC"):
        # Of a table without row numbers the last two are errors too.
        with contextlib.suppress(sqlite3.Error, UnicodeDecodeError, OverflowError):
            for row in sql.execute(f"SELECT * FROM {table} ORDER BY {order}"):
                if isinstance(row[0], str):
                    found.setdefault(row[0], row)
    return found
