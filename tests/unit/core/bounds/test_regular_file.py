"""Only regular files are hashed: a FIFO or a device would never end."""

import os
from pathlib import Path

import pytest

from engine_host.core.bounds.regular_file import open_regular


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    with open_regular(tmp_path / "a") as source:
        assert source.read() == b"abc"


def test_nothing_else_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, Path("/dev/zero")):
        with pytest.raises(OSError, match=r"regular|directory"):
            open_regular(path)
