"""A host that does not answer: one that ends in order is told from one that was killed."""

import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from engine_host.client.failures import of_transport
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.protocol.errors import Reason

# Beyond the largest that Linux gives.
NOBODY = (1 << 22) + 1


@pytest.fixture
def deserted(home: Path) -> Iterator[Folders]:
    """The run folder of a host that listens no more, with its socket."""
    folders = Folders.resolve()
    folders.run.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folders.socket))
    yield folders
    folders.socket.unlink()
    folders.lock.unlink(missing_ok=True)


def told(folders: Folders) -> HostError:
    with pytest.raises(HostError) as caught:
        ControlClient(folders).connect()
    assert caught.value.reason is Reason.HOST_UNREACHABLE
    return caught.value


def test_a_host_that_ends_in_order_is_said_to_end(deserted: Folders) -> None:
    deserted.lock.write_text(f"{os.getpid()}\n")
    with deserted.lock.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        problem = told(deserted).problem
    assert "orderly" not in problem.cause
    assert "ending" in problem.cause
    assert str(os.getpid()) in problem.cause


@pytest.mark.parametrize("left", ["dead", "nothing", "\x00 no number", "another"])
def test_a_host_that_was_killed_is_said_not_to_have_ended_in_order(deserted: Folders, left: str) -> None:
    if left != "nothing":
        # The number of a host that was killed may be another process's by now, such as this one's.
        number = {"dead": f"{NOBODY}\n", "another": f"{os.getpid()}\n"}
        deserted.lock.write_text(number.get(left, left))
    problem = told(deserted).problem
    assert "did not end in an orderly way" in problem.cause
    assert problem.message == "No engine host runs."


@pytest.mark.parametrize("runs", [True, False])
def test_a_connection_that_broke_off_says_whether_the_host_still_runs(deserted: Folders, runs: bool) -> None:
    deserted.lock.write_text(f"{os.getpid()}\n")
    broken = httpx.RemoteProtocolError("peer closed connection")
    with deserted.lock.open("rb") as held:
        if runs:
            fcntl.flock(held, fcntl.LOCK_EX)
        problem = of_transport(broken, str(deserted.socket)).problem
    assert problem.reason is Reason.HOST_GONE
    assert ("still runs" in problem.cause) is runs
    assert "RemoteProtocolError" not in problem.sentence() + problem.cause
    # The way to another machine's host tells nothing of that host.
    assert "way" in of_transport(broken, str(deserted.socket), "gpu").problem.cause
