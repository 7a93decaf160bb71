"""A file is as it was or as it should be, and nothing is left beside it."""

import os
import stat
from pathlib import Path

import pytest

from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from tests.unit.full_disk import small_disk


def test_writes_text_and_bytes_and_makes_the_folder(home: Path) -> None:
    path = home / "a" / "b" / "file"
    atomic_file.write(path, "zwölf")
    assert path.read_bytes() == "zwölf".encode()
    atomic_file.write(path, b"\x00\xff", mode=0o644)
    assert path.read_bytes() == b"\x00\xff"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_is_private_from_the_start_whatever_the_umask(home: Path) -> None:
    before = os.umask(0)
    try:
        atomic_file.write(home / "token", "secret")
    finally:
        os.umask(before)
    assert stat.S_IMODE((home / "token").stat().st_mode) == 0o600


def test_a_full_disk_leaves_the_old_file_and_nothing_beside_it(home: Path) -> None:
    with small_disk(home / "disk") as disk:
        path = disk.folder / "file"
        atomic_file.write(path, "old")
        with disk.full(), pytest.raises(HostError) as raised:
            atomic_file.write(path, "new" * 10_000)
        assert raised.value.reason is Reason.DISK_FULL
        assert str(path) in raised.value.problem.message
        assert raised.value.problem.fix is not None
        assert path.read_text(encoding="utf-8") == "old"
        assert [entry.name for entry in disk.folder.iterdir()] == ["file"]


def test_a_folder_in_the_way_is_named(home: Path) -> None:
    (home / "file" / "below").mkdir(parents=True)
    with pytest.raises(HostError) as raised:
        atomic_file.write(home / "file", "text")
    assert raised.value.reason is Reason.NOT_WRITABLE
    assert [entry.name for entry in home.iterdir()] == ["file"]


def test_a_file_instead_of_the_folder_is_named(home: Path) -> None:
    (home / "config").write_text("", encoding="utf-8")
    with pytest.raises(HostError) as raised:
        atomic_file.write(home / "config" / "settings.toml", "text")
    assert raised.value.reason is Reason.NOT_WRITABLE
    assert str(home / "config" / "settings.toml") in raised.value.problem.message


def test_a_link_is_followed_only_where_it_is_the_persons_own(home: Path) -> None:
    (home / "kept").mkdir()
    target, link = home / "kept" / "file", home / "link"
    target.write_text("old", encoding="utf-8")
    link.symlink_to("kept/file")
    atomic_file.write(link, "new", follow=True)
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new"
    assert [entry.name for entry in target.parent.iterdir()] == ["file"]
    atomic_file.write(link, "own")
    assert not link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new"


def test_a_link_to_a_file_that_is_not_there_yet_makes_it(home: Path) -> None:
    link = home / "link"
    link.symlink_to(home / "kept" / "file")
    atomic_file.write(link, "new", follow=True)
    assert (home / "kept" / "file").read_text(encoding="utf-8") == "new"
    assert link.is_symlink()


def test_what_a_killed_writer_left_is_removed_and_another_at_work_is_let_be(home: Path) -> None:
    names = (".a.toml.x1_yz2ab", ".a.toml.12345678", ".b.toml.x1_yz2ab")
    for name in names:
        (home / name).write_text("half")
    os.utime(home / names[0], (1, 1))
    os.utime(home / names[2], (1, 1))
    atomic_file.write(home / "a.toml", "whole")
    assert sorted(path.name for path in home.iterdir()) == sorted([names[1], names[2], "a.toml"])
