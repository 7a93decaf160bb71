"""The SQLite files of the program; a store has all that outlives the host: kept engines, jobs, routes."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

_MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE document (
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        at REAL NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (kind, id)
    ) WITHOUT ROWID;
    CREATE INDEX document_by_time ON document (kind, at);
    """,
)
_LARGEST = 32 << 20
_PATIENCE = 5.0
"""Seconds that a file in use by others is waited for."""
# The second is what a full disk gives when SQLite cannot make the index of its write-ahead log.
_FULL = {"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"}
# The last is what a table ends in that is not there any more.
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR")


class Database:
    """One SQLite file, safe against a kill at any moment.

    Each entry of `migrations` takes the file from its index to the next version; entries are only ever added.
    `salvage` is the next action for a damaged file.
    """

    salvage = Fix(text=tr("Move it away; a new one is made."))

    def __init__(self, path: Path, migrations: tuple[str, ...], *, one_thread: bool = True) -> None:
        """Open and migrate; without `one_thread` the caller sees to it that one thread at a time uses it.

        Raises HostError(not_writable), HostError(disk_full), HostError(database_too_new).
        """
        self.path = path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # SQLite gives its other files the mode of this one.
            handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
            try:
                os.fchmod(handle, 0o600)
            finally:
                os.close(handle)
        except OSError as error:
            raise atomic_file.saving_failed(path, error) from error
        with self.clear_errors():
            self.sql = sqlite3.connect(
                path, isolation_level=None, timeout=_PATIENCE, check_same_thread=one_thread
            )
            # A text that is none is the reader's to judge: it must not end the reading of the others.
            self.sql.text_factory = lambda raw: raw.decode("utf-8", "replace")
            try:
                self._migrate(migrations)
            except BaseException:
                self.sql.close()
                raise

    def _migrate(self, migrations: tuple[str, ...]) -> None:
        self._write_ahead()
        self.sql.execute("PRAGMA synchronous=NORMAL")
        version = int(self.sql.execute("PRAGMA user_version").fetchone()[0])
        if version > len(migrations):
            raise HostError(
                Reason.DATABASE_TOO_NEW,
                tr(
                    "{path} was written by a newer version of this program (schema {version}).",
                    path=self.path,
                    version=version,
                ),
                cause=tr("This version knows schemas up to {count}.", count=len(migrations)),
                fix="Use the newer version, or move the file away: settings and models are not in it.",
                evidence={"path": str(self.path), "schema": version, "known": len(migrations)},
            )
        for number, script in enumerate(migrations[version:], start=version + 1):
            self._take_to(number, script)

    def _write_ahead(self) -> None:
        """Keep a log of what is written; SQLite refuses at once where two turn a new file to it together."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                self.sql.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > until:
                    raise
            time.sleep(0.005)

    def _take_to(self, number: int, script: str) -> None:
        """Take the file to a version, unless another process does so at the same time."""
        try:
            self.sql.executescript(f"BEGIN IMMEDIATE;{script};PRAGMA user_version={number};COMMIT;")
        except sqlite3.OperationalError:
            if self.sql.in_transaction:
                self.sql.execute("ROLLBACK")
            # What the other one made stands in the way of making it again.
            if int(self.sql.execute("PRAGMA user_version").fetchone()[0]) < number:
                raise

    def close(self) -> None:
        """Close the file."""
        self.sql.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it or nothing. Raises HostError as `clear_errors` does."""
        with self.clear_errors():
            self.sql.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.sql.execute("COMMIT")
            except BaseException:
                # A full disk ends the transaction by itself.
                if self.sql.in_transaction:
                    self.sql.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def clear_errors(self) -> Iterator[None]:
        """Turn the errors of SQLite into HostError(disk_full) or HostError(not_writable)."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # The second is what damage to the names of its own columns ends in.
            name = getattr(error, "sqlite_errorname", "")
            full = name in _FULL
            damaged = name.startswith(_DAMAGED) or isinstance(error, UnicodeDecodeError)
            cause = tr("The file is damaged.") if damaged else tr("The file is not writable, or locked.")
            fix = self.salvage if damaged else tr("Make it writable, or end what holds it.")
            raise HostError(
                Reason.DISK_FULL if full else Reason.NOT_WRITABLE,
                tr("The database {path} could not be used: {error}.", path=self.path, error=error),
                cause="The disk is full." if full else cause,
                fix="Free some space and try again." if full else fix,
                evidence={"path": str(self.path), "sqlite": name},
            ) from error


class Store(Database):
    """Documents by kind and id, as JSON, in SQLite; safe against a kill at any moment."""

    def __init__(self, path: Path, migrations: tuple[str, ...] = _MIGRATIONS) -> None:
        """Open and migrate.

        Raises HostError(not_writable), HostError(disk_full), HostError(database_too_new).
        """
        super().__init__(path, migrations)

    def put(self, kind: str, identifier: str, at: float, body: str) -> None:
        """Save a document, replacing one of the same kind and id.

        Raises HostError(disk_full), HostError(not_writable).
        """
        with self.clear_errors():
            self.sql.execute(
                "INSERT OR REPLACE INTO document (kind, id, at, body) VALUES (?, ?, ?, ?)",
                (kind, identifier, at, body),
            )

    def remove(self, kind: str, identifier: str) -> None:
        """Remove a document if it is there."""
        with self.clear_errors():
            self.sql.execute("DELETE FROM document WHERE kind = ? AND id = ?", (kind, identifier))

    def get(self, kind: str, identifier: str) -> str | None:
        """One document, or None."""
        with self.clear_errors():
            row = self.sql.execute(
                "SELECT body FROM document WHERE kind = ? AND id = ? AND length(body) <= ?",
                (kind, identifier, _LARGEST),
            ).fetchone()
        return None if row is None else str(row[0])

    def newest(self, kind: str, limit: int) -> list[str]:
        """Documents of a kind, newest first."""
        with self.clear_errors():
            rows = self.sql.execute(
                "SELECT body FROM document WHERE kind = ? AND length(body) <= ? ORDER BY at DESC LIMIT ?",
                (kind, _LARGEST, limit),
            ).fetchall()
        return [str(row[0]) for row in rows]

    def prune(self, kind: str, keep: int) -> None:
        """Remove all but the newest documents of a kind."""
        with self.clear_errors():
            self.sql.execute(
                "DELETE FROM document WHERE kind = ? AND id NOT IN "
                "(SELECT id FROM document WHERE kind = ? ORDER BY at DESC LIMIT ?)",
                (kind, kind, keep),
            )
