"""One host a data folder, whatever the run folders."""

import json
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.daemon.run_lock import RunLock
from engine_host.protocol.errors import Reason
from tests.unit.full_disk import small_disk

HOLDER = """
import sys
from dataclasses import replace
from pathlib import Path
from engine_host.core.paths import Folders
from engine_host.daemon.run_lock import RunLock
folders = replace(Folders.resolve(), run=Path(sys.argv[1]))
folders.make_run_folder()
instance = RunLock(folders)
instance.claim()
control = instance.bind() if sys.argv[2:] else None
print("claimed", flush=True)
sys.stdin.read()
instance.release()
"""


@pytest.fixture
def folders(home: Path) -> Folders:
    found = Folders.resolve()
    found.make_run_folder()
    return found


def holder(run: Path, *listens: str) -> "subprocess.Popen[str]":
    """A host of another session, with another run folder, for the same data."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(run), *listens],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "claimed\n"
    return child


def refused(folders: Folders, patience: float = 0.0) -> HostError:
    with pytest.raises(HostError) as raised:
        RunLock(folders, patience=patience).claim()
    assert not folders.lock.exists(), "the run folder is free again"
    assert not folders.token.exists()
    folders.make_run_folder()
    return raised.value


def test_the_claim_says_where_the_host_is_and_no_more_after_its_end(folders: Folders) -> None:
    instance = RunLock(folders)
    instance.claim()
    claim = folders.read_lock_owner()
    assert claim is not None
    assert claim.here
    assert claim.folders == folders
    assert folders.elsewhere() is None
    assert replace(folders, run=folders.run.parent / "other").elsewhere() == folders
    instance.release()
    assert folders.read_lock_owner() is None


def test_the_claim_says_whether_the_host_stays_until_the_machine_is_started_anew(folders: Folders) -> None:
    instance = RunLock(folders)
    instance.claim()
    for stays in (False, True, False, True):
        instance.note(stays=stays)
        claim = folders.read_lock_owner()
        assert claim is not None
        assert claim.stays is stays
    said = json.loads(folders.data_lock.read_bytes())
    folders.data_lock.write_text(json.dumps(said | {"boot": "the one before"}), encoding="utf-8")
    claim = folders.read_lock_owner()
    assert claim is not None
    assert not claim.stays
    instance.release()
    instance.note(stays=True)
    assert folders.read_lock_owner() is None


def test_a_killed_host_that_was_to_stay_is_not_forgotten_for_one_of_a_command(folders: Folders) -> None:
    instance = RunLock(folders)
    instance.claim()
    instance.note(stays=True)
    killed = folders.data_lock.read_bytes()
    instance.release()

    def stays_after(*, noted: bool | None = None, asked: bool = False) -> bool:
        folders.data_lock.write_bytes(killed)
        later = RunLock(folders)
        later.claim()
        if noted is not None:
            later.note(stays=noted)
        if asked:
            later.end_asked()
        later.release()
        owner = folders.read_lock_owner()
        return owner is not None and owner.stays

    assert stays_after()
    assert stays_after(noted=False), "a host that ends with a command or a window"
    assert not stays_after(noted=True), "it ended in order itself"
    assert not stays_after(asked=True), "sndr quit"


def test_a_host_of_another_session_is_refused_and_named(folders: Folders, home: Path) -> None:
    child = holder(home / "other", "listens")
    error = refused(folders, patience=30.0)
    assert error.reason is Reason.SECOND_INSTANCE
    assert error.problem.evidence == {
        "pid": child.pid,
        "run": str(home / "other"),
        "data": str(folders.data),
    }
    assert str(child.pid) in error.problem.message
    assert str(home / "other") in error.problem.message
    assert error.problem.fix is not None
    assert error.problem.fix.command == "sndr quit"
    child.communicate("", timeout=10)
    after = RunLock(folders)
    after.claim()
    after.release()


def test_one_that_does_not_answer_is_named_with_what_ends_it(folders: Folders, home: Path) -> None:
    child = holder(home / "other")
    fix = refused(folders).problem.fix
    assert fix is not None
    assert fix.command == f"kill {child.pid}"
    child.communicate("", timeout=10)


def test_a_host_that_ends_is_waited_for(folders: Folders, home: Path) -> None:
    child = holder(home / "other")
    assert child.stdin is not None
    end = threading.Timer(0.3, child.stdin.close)
    end.start()
    instance = RunLock(folders, patience=30.0)
    instance.claim()
    assert child.wait(10) == 0
    instance.release()
    end.join()
    assert child.stdout is not None
    child.stdout.close()


def test_what_a_killed_host_noted_stops_nobody(folders: Folders, home: Path) -> None:
    child = holder(home / "other", "listens")
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=10)
    assert folders.elsewhere() is not None
    instance = RunLock(folders)
    instance.claim()
    assert folders.elsewhere() is None
    instance.release()
    for path in (home / "other").iterdir():
        path.unlink()


def test_a_host_on_another_machine_is_not_waited_for(folders: Folders, home: Path) -> None:
    child = holder(home / "other")
    said = json.loads(folders.data_lock.read_bytes())
    folders.data_lock.write_text(json.dumps(said | {"machine": "far-away"}), encoding="utf-8")
    assert folders.elsewhere() is None
    before = time.monotonic()
    error = refused(folders, patience=60.0)
    assert time.monotonic() - before < 30
    assert "far-away" in error.problem.message
    child.communicate("", timeout=10)


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", "null", '{"pid": 1}', '{"pid": "x", "run": "/", "machine": ""}']
)
def test_a_damaged_note_says_nothing(folders: Folders, damage: str) -> None:
    folders.data.mkdir()
    folders.data_lock.write_text(damage, encoding="utf-8")
    assert folders.read_lock_owner() is None
    assert folders.elsewhere() is None
    instance = RunLock(folders)
    instance.claim()
    assert folders.read_lock_owner() is not None
    instance.release()


def test_hosts_of_other_homes_know_nothing_of_each_other(folders: Folders, home: Path) -> None:
    first = RunLock(folders)
    first.claim()
    other = Folders.resolve({"SNDR_HOME": str(home / "second")})
    other.make_run_folder()
    second = RunLock(other)
    second.claim()
    assert folders.read_lock_owner() is not None
    assert other.read_lock_owner() is not None
    assert folders.elsewhere() is None
    assert other.elsewhere() is None
    second.release()
    first.release()


def test_a_full_disk_leaves_no_claim(home: Path) -> None:
    folders = Folders.resolve()
    folders.make_run_folder()
    with small_disk(home / "disk") as disk:
        full = replace(folders, data=disk.folder / "data")
        full.data.mkdir()
        with disk.full(), pytest.raises(HostError) as raised:
            RunLock(full).claim()
        assert raised.value.reason is Reason.DISK_FULL
        full.make_run_folder()
        instance = RunLock(full)
        instance.claim()
        instance.release()


def test_something_in_the_way_of_the_claim_is_named(folders: Folders) -> None:
    folders.data_lock.mkdir(parents=True)
    error = refused(folders)
    assert error.reason is Reason.NOT_WRITABLE
    assert str(folders.data_lock) in error.problem.message
