"""One host a run folder, and nothing of it left behind."""

import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.daemon.run_lock import RunLock
from engine_host.protocol.errors import Reason
from tests.unit.full_disk import small_disk

HOLDER = """
import sys, time
from engine_host.core.paths import Folders
from engine_host.daemon.run_lock import RunLock
folders = Folders.resolve()
folders.make_run_folder()
instance = RunLock(folders)
instance.claim()
instance.bind()
print("claimed", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folders(home: Path) -> Folders:
    found = Folders.resolve()
    found.make_run_folder()
    return found


def holder() -> "subprocess.Popen[str]":
    """Another host that has claimed the run folder."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "claimed\n"
    return child


def killed(child: "subprocess.Popen[str]") -> None:
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=10)


def test_claims_binds_and_leaves_nothing_behind(folders: Folders) -> None:
    instance = RunLock(folders)
    instance.claim()
    control = instance.bind()
    assert folders.token.read_text(encoding="utf-8") == instance.token
    assert folders.lock.read_text(encoding="ascii").strip() == str(os.getpid())
    for path in instance.files():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    control.close()
    instance.release()
    assert not folders.run.exists()
    instance.release()


def test_the_socket_is_private_whatever_the_umask(folders: Folders) -> None:
    instance = RunLock(folders)
    instance.claim()
    before = os.umask(0)
    try:
        control = instance.bind()
        assert os.umask(0) == 0, "the umask is as it was"
    finally:
        os.umask(before)
    assert stat.S_IMODE(folders.socket.stat().st_mode) == 0o600
    control.close()
    instance.release()


def test_every_start_has_a_token_of_its_own(folders: Folders) -> None:
    assert RunLock(folders).token != RunLock(folders).token
    assert len(RunLock(folders).token) >= 43


def test_a_second_host_is_refused_and_harms_nothing(folders: Folders) -> None:
    child = holder()
    token = folders.token.read_bytes()
    second = RunLock(folders)
    with pytest.raises(HostError) as raised:
        second.claim()
    assert raised.value.reason is Reason.SECOND_INSTANCE
    assert raised.value.problem.evidence["pid"] == child.pid
    assert str(child.pid) in raised.value.problem.message
    second.release()
    assert folders.token.read_bytes() == token
    assert folders.lock.exists()
    assert folders.socket.exists()
    killed(child)
    third = RunLock(folders)
    third.claim()
    third.release()


def test_what_a_killed_host_left_is_taken_over(folders: Folders) -> None:
    killed(holder())
    assert folders.lock.exists()
    assert folders.socket.exists()
    instance = RunLock(folders)
    instance.claim()
    assert folders.token.read_text(encoding="utf-8") == instance.token
    control = instance.bind()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(folders.socket))
    control.close()
    instance.release()
    assert not folders.run.exists()


def test_two_that_start_at_once_make_one_host(folders: Folders) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", HOLDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(3)
    ]
    said = []
    for child in children:
        assert child.stdout is not None
        said.append(child.stdout.readline())
    assert sorted(said) == ["", "", "claimed\n"]
    for child in children:
        killed(child)
    instance = RunLock(folders)
    instance.claim()
    instance.release()


def test_a_lock_held_by_the_reaper_of_a_killed_host_is_waited_for(folders: Folders) -> None:
    program = (
        "import fcntl, os, sys, time\n"
        "lock = os.open(sys.argv[1], os.O_RDWR)\n"
        "fcntl.flock(lock, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "time.sleep(0.2)\n"
        "os.unlink(sys.argv[1])\n"
    )
    dead = subprocess.Popen(["true"])
    dead.wait(timeout=10)
    folders.lock.write_text(f"{dead.pid}\n", encoding="ascii")
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(folders.lock)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    instance = RunLock(folders)
    instance.claim()
    assert folders.lock.read_text(encoding="ascii").strip() == str(os.getpid())
    child.communicate(timeout=10)
    instance.release()


def test_a_full_disk_leaves_no_lock_and_no_token(home: Path) -> None:
    with small_disk(home / "disk") as disk:
        folders = Folders(*(disk.folder / name for name in ("config", "data", "cache", "run")))
        folders.make_run_folder()
        instance = RunLock(folders)
        with disk.full(), pytest.raises(HostError) as raised:
            instance.claim()
        assert raised.value.reason is Reason.DISK_FULL
        assert not folders.run.exists()
        folders.make_run_folder()
        instance.claim()
        instance.release()


def test_something_in_the_way_of_the_socket_is_named(folders: Folders) -> None:
    instance = RunLock(folders)
    instance.claim()
    folders.socket.mkdir()
    with pytest.raises(HostError) as raised:
        instance.bind()
    assert raised.value.reason is Reason.NOT_WRITABLE
    assert str(folders.socket) in raised.value.problem.message
    folders.socket.rmdir()
    instance.release()


def test_something_in_the_way_of_the_lock_is_named(folders: Folders) -> None:
    folders.lock.mkdir()
    with pytest.raises(HostError) as raised:
        RunLock(folders).claim()
    assert raised.value.reason is Reason.NOT_WRITABLE
    folders.lock.rmdir()
