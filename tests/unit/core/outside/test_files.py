"""Paths that somebody else laid out: what is no regular file is refused, and nothing waits for it."""

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from engine_host.core.outside import files


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def listening(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
    return path


def folder(path: Path) -> Path:
    path.mkdir()
    return path


ODD: list[Callable[[Path], Path]] = [
    pipe,
    listening,
    folder,
    lambda _: Path("/dev/zero"),
    lambda path: path.with_name("a\0b"),
    lambda path: path.with_name("x" * 5000),
]


@pytest.mark.parametrize("make", ODD, ids=["pipe", "socket", "folder", "device", "NUL", "long"])
def test_what_is_no_regular_file_is_an_error_of_the_system(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    path = make(tmp_path / "odd")
    for act in (lambda: files.read(path, 10), lambda: files.open_regular(path)):
        with pytest.raises(OSError) as caught:  # noqa: PT011 - each has its own kind
            act()
        assert caught.value.strerror


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 100])
def test_at_most_so_much_is_read(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * size)
    if size <= 10:
        assert files.read(path, 10) == b"x" * size
        return
    with pytest.raises(OSError, match="larger than any such file") as caught:
        files.read(path, 10)
    assert caught.value.errno == errno.EFBIG


def test_files_that_do_not_tell_their_size_are_read_whole() -> None:
    assert b"PATH=" in files.read(Path("/proc/self/environ"), 1 << 20)
    with pytest.raises(OSError, match="larger"):
        files.read(Path("/proc/self/environ"), 3)


def test_a_user_that_does_not_exist_is_no_error() -> None:
    assert files.expanded("~nobody-of-this-name/models") == Path("~nobody-of-this-name/models")
    assert files.expanded("~") == Path.home()
    assert not os.path.isdir(files.expanded("/tmp\0"))


def test_names_that_are_no_text() -> None:
    assert files.is_text(Path("/ä/😀.gguf"))
    assert not files.is_text(Path(os.fsdecode(b"/\xff.gguf")))


def test_a_regular_file_is_opened(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    with files.open_regular(tmp_path / "a") as source:
        assert source.read() == b"abc"
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with files.open_regular(tmp_path / "link") as source:
        assert source.read() == b"abc"
    with pytest.raises(OSError, match="symbolic"):
        files.open_regular(tmp_path / "link", follow=False)
