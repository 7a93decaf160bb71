"""The folders of the program, and the privacy of its run folder."""

import os
import stat
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.protocol.errors import Reason


def unsafe(folders: Folders) -> HostError:
    with pytest.raises(HostError) as raised:
        folders.make_run_folder()
    return raised.value


def test_one_variable_puts_everything_below_one_folder(home: Path) -> None:
    folders = Folders.resolve({"SNDR_HOME": str(home)})
    paths = (folders.settings, folders.store, folders.logs, folders.cache, folders.run)
    assert all(home in path.parents for path in paths)
    assert not any(path.exists() for path in (folders.config, folders.data, folders.cache, folders.run))


def test_the_cache_moves_alone(home: Path) -> None:
    folders = Folders.resolve({"SNDR_HOME": str(home), "SNDR_CACHE": str(home / "elsewhere")})
    assert folders.cache == home / "elsewhere"
    assert folders.data == home / "data"


def test_the_run_folder_is_in_the_runtime_folder_of_the_session(home: Path) -> None:
    assert Folders.resolve({"XDG_RUNTIME_DIR": str(home)}).run == home / "sndr"


@pytest.mark.parametrize("runtime", ["", "/does/not/exist"])
def test_without_a_session_the_run_folder_is_the_users_own(runtime: str) -> None:
    run = Folders.resolve({"XDG_RUNTIME_DIR": runtime}).run
    assert run.name == f"sndr-{os.getuid()}"


def test_a_long_path_gets_a_short_stand_in_that_is_always_the_same(home: Path) -> None:
    long = {"SNDR_HOME": str(home / ("x" * 90))}
    run = Folders.resolve(long).run
    assert run == Folders.resolve(long).run
    assert run != Folders.resolve({"SNDR_HOME": str(home / ("y" * 90))}).run
    # The longest socket below it is an engine's.
    assert len(os.fsencode(run / "plan-00000000.sock")) < 104


def test_makes_the_run_folder_private_and_accepts_it_again(home: Path) -> None:
    folders = Folders.resolve({"SNDR_HOME": str(home)})
    before = os.umask(0)
    try:
        folders.make_run_folder()
        folders.make_run_folder()
    finally:
        os.umask(before)
    assert stat.S_IMODE(folders.run.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o750, 0o707, 0o711])
def test_refuses_a_run_folder_that_others_may_enter(home: Path, mode: int) -> None:
    folders = Folders.resolve({"SNDR_HOME": str(home)})
    folders.run.mkdir()
    folders.run.chmod(mode)
    error = unsafe(folders)
    assert error.reason is Reason.RUN_FOLDER_UNSAFE
    assert error.problem.fix is not None
    assert error.problem.fix.command == f"chmod 700 {folders.run}"
    assert stat.S_IMODE(folders.run.stat().st_mode) == mode, "it is not changed behind the user's back"


def test_refuses_a_link_even_to_a_private_folder(home: Path) -> None:
    folders = Folders.resolve({"SNDR_HOME": str(home)})
    (home / "private").mkdir(mode=0o700)
    folders.run.symlink_to(home / "private")
    assert unsafe(folders).reason is Reason.RUN_FOLDER_UNSAFE


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_refuses_a_folder_of_somebody_else(home: Path) -> None:
    folders = Folders.resolve({"SNDR_HOME": str(home)})
    folders.run.mkdir(mode=0o700)
    os.chown(folders.run, 12_345, 12_345)
    error = unsafe(folders)
    assert error.reason is Reason.RUN_FOLDER_UNSAFE
    assert error.problem.evidence["owner"] == 12_345


def test_a_file_in_the_way_is_named(home: Path) -> None:
    folders = Folders.resolve({"SNDR_HOME": str(home)})
    folders.run.write_text("", encoding="utf-8")
    error = unsafe(folders)
    assert error.reason is Reason.NOT_WRITABLE
    assert str(folders.run) in error.problem.message


@pytest.mark.parametrize("name", ["~nobody-of-this-name", "x" * 5000, "a/../b", "\udcff"])
def test_any_folder_may_be_named(name: str) -> None:
    folders = Folders.resolve({"SNDR_HOME": name, "SNDR_CACHE": name})
    assert folders.data.is_absolute()
    assert len(os.fsencode(folders.socket)) < 108


@pytest.mark.parametrize(
    "note", [b"[" * 100_000, b'{"pid": 1e999, "machine": "", "run": ""}', b"\xff", b"5", b"{}"]
)
def test_a_claim_that_nobody_wrote_is_none(home: Path, note: bytes) -> None:
    folders = Folders.resolve({"SNDR_HOME": str(home)})
    folders.data.mkdir()
    folders.data_lock.write_bytes(note)
    assert folders.read_lock_owner() is None
    folders.data_lock.unlink()
    os.mkfifo(folders.data_lock)
    assert folders.read_lock_owner() is None


@pytest.mark.parametrize("name", ["x" * 5000, "/dev/null", "/proc/1/root/x", "relative"])
def test_any_run_folder_of_the_system_may_be_named(name: str) -> None:
    assert Folders.resolve({"XDG_RUNTIME_DIR": name}).run.name.startswith("sndr")
