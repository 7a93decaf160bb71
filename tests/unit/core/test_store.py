"""The database: migrated, safe against a kill, and clear about what is wrong with it."""

import os
import sqlite3
import threading
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.core.store import _MIGRATIONS, Store
from engine_host.protocol.errors import Reason
from tests.unit.full_disk import small_disk


@pytest.fixture
def path(home: Path) -> Path:
    return home / "data" / "sndr.sqlite"


def test_keeps_documents_over_a_restart(path: Path) -> None:
    store = Store(path)
    store.put("job", "a", 1.0, "first")
    store.put("job", "b", 2.0, "second")
    store.put("job", "a", 3.0, "again")
    store.put("engine", "a", 9.0, "another kind")
    store.close()
    store = Store(path)
    assert store.get("job", "a") == "again"
    assert store.newest("job", 10) == ["again", "second"]
    assert store.newest("job", 1) == ["again"]
    store.remove("job", "a")
    store.remove("job", "a")
    assert store.get("job", "a") is None
    assert store.get("engine", "a") == "another kind"
    store.close()


def test_prunes_all_but_the_newest_of_one_kind(path: Path) -> None:
    store = Store(path)
    for number in range(10):
        store.put("job", str(number), float(number), str(number))
    store.put("engine", "e", 0.0, "e")
    store.prune("job", 3)
    assert store.newest("job", 100) == ["9", "8", "7"]
    assert store.get("engine", "e") == "e"
    store.close()


def test_a_new_file_that_another_is_writing_to_is_waited_for(path: Path) -> None:
    path.parent.mkdir(parents=True)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    # SQLite refuses to begin a write-ahead log at once then, and does not wait as it does everywhere else.
    end = threading.Timer(0.05, other.execute, ("COMMIT",))
    end.start()
    Store(path).close()
    end.join()
    other.close()


def test_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    Store(path, (*_MIGRATIONS, "CREATE TABLE later (x)")).close()
    before = path.read_bytes()
    with pytest.raises(HostError) as raised:
        Store(path)
    assert raised.value.reason is Reason.DATABASE_TOO_NEW
    assert str(path) in raised.value.problem.message
    assert path.read_bytes() == before


def test_a_migration_keeps_what_is_there(path: Path) -> None:
    store = Store(path)
    store.put("job", "a", 1.0, "kept")
    store.close()
    store = Store(path, (*_MIGRATIONS, "ALTER TABLE document ADD COLUMN note TEXT"))
    assert store.get("job", "a") == "kept"
    store.close()


def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    Store(path).close()
    with pytest.raises(HostError):
        Store(path, (*_MIGRATIONS, "CREATE TABLE half (x); CREATE TABLE document (x)"))
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA user_version").fetchone()[0] == 1
    assert database.execute("SELECT name FROM sqlite_master WHERE name = 'half'").fetchone() is None
    database.close()


def test_a_file_that_is_no_database_is_named(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"this is a letter to a friend, not a database\n" * 100)
    with pytest.raises(HostError) as raised:
        Store(path)
    assert str(path) in raised.value.problem.message
    assert raised.value.problem.fix is not None


def test_a_damaged_page_is_a_clear_error_when_reading(path: Path) -> None:
    store = Store(path)
    for number in range(200):
        store.put("job", str(number), float(number), "x" * 500)
    store.close()
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    store = Store(path)
    for attempt in (lambda: store.newest("job", 10), lambda: store.get("job", "3")):
        with pytest.raises(HostError) as raised:
            attempt()
        assert str(path) in raised.value.problem.message
    store.close()


def test_a_full_disk_is_told_and_the_store_goes_on_afterwards(home: Path) -> None:
    with small_disk(home / "disk") as disk:
        store = Store(disk.folder / "s.sqlite")
        store.put("job", "a", 1.0, "kept")
        with disk.full(), pytest.raises(HostError) as raised:
            store.put("job", "large", 2.0, "x" * 1_000_000)
        if disk.real:
            assert raised.value.reason is Reason.DISK_FULL
        assert "kept" in store.newest("job", 200)
        store.put("job", "b", 3.0, "after")
        assert store.get("job", "b") == "after"
        store.close()


def test_opening_on_a_full_disk_is_told(home: Path) -> None:
    with small_disk(home / "disk") as disk, disk.full(), pytest.raises(HostError) as raised:
        Store(disk.folder / "s.sqlite")
    if disk.real:
        assert raised.value.reason is Reason.DISK_FULL


def test_a_folder_that_cannot_be_made_is_named(home: Path) -> None:
    (home / "data").write_text("", encoding="utf-8")
    with pytest.raises(HostError) as raised:
        Store(home / "data" / "sndr.sqlite")
    assert raised.value.reason is Reason.NOT_WRITABLE


def test_after_close_it_says_so(path: Path) -> None:
    store = Store(path)
    store.close()
    with pytest.raises(HostError):
        store.put("job", "a", 1.0, "late")


def test_a_row_that_is_no_text_does_not_hide_the_others(path: Path) -> None:
    store = Store(path)
    store.put("job", "good", 1.0, "good")
    store.close()
    with sqlite3.connect(path) as raw:
        for number, body in enumerate(["CAST(x'ff00' AS TEXT)", "x'00ff'", "12", "zeroblob(40000000)"]):
            raw.execute(f"INSERT INTO document VALUES ('job', 'odd{number}', 2.0, {body})")
    raw.close()
    store = Store(path)
    found = store.newest("job", 100)
    assert "good" in found
    assert len(found) == 4, "the largest is left out"
    assert store.get("job", "odd3") is None
    store.close()


def test_damage_to_its_own_columns_is_a_clear_error(path: Path) -> None:
    Store(path).close()
    path.write_bytes(path.read_bytes().replace(b"kind TEXT NOT NULL", b"k\xffnd TEXT NOT NULL"))

    def use() -> None:
        store = Store(path)
        try:
            store.newest("job", 10)
        finally:
            store.close()

    with pytest.raises(HostError) as caught:
        use()
    assert caught.value.reason is Reason.NOT_WRITABLE
