"""A command that asks for a host, as a process of its own."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.core.paths import Folders
from tests.unit.client.test_sync import was_reached


@pytest.fixture
def planted(home: Path) -> Iterator[socket.socket]:
    """Somebody who listens in the run folder, with a token for whoever looks for one."""
    folders = Folders.resolve()
    folders.run.mkdir(mode=0o700)
    folders.token.write_text("planted", encoding="utf-8")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folders.socket))
        listener.listen()
        listener.setblocking(False)
        yield listener
    folders.socket.unlink()


def test_a_command_says_whose_folder_it_is_and_asks_nothing(planted: socket.socket) -> None:
    Folders.resolve().run.chmod(0o755)
    said = subprocess.run(
        [sys.executable, "-m", "engine_host", "status"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert said.returncode != 0
    assert "can be entered by others" in said.stderr
    assert not was_reached(planted)
