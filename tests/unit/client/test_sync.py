"""A client talks to a host of this user alone."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_host.cli.start.host import find_or_start
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.protocol.errors import Reason

NOBODY = 12_345


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


def was_reached(listener: socket.socket) -> bool:
    """Whether anybody connected."""
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def refused(folders: Folders) -> HostError:
    with pytest.raises(HostError) as raised:
        ControlClient(folders).connect()
    with pytest.raises(HostError) as found:
        find_or_start(folders)
    assert found.value.reason is raised.value.reason
    return raised.value


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_run_folder_of_somebody_else_is_not_talked_to(planted: socket.socket) -> None:
    folders = Folders.resolve()
    os.chown(folders.run, NOBODY, NOBODY)
    assert refused(folders).reason is Reason.RUN_FOLDER_UNSAFE
    assert not was_reached(planted)


@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_a_run_folder_that_others_may_enter_is_not_talked_to(planted: socket.socket, mode: int) -> None:
    folders = Folders.resolve()
    folders.run.chmod(mode)
    assert refused(folders).reason is Reason.RUN_FOLDER_UNSAFE
    assert not was_reached(planted)
