"""A host that was killed comes back, through the window, as what it was: one that stays, or its own."""

import asyncio
from collections.abc import Callable

import pytest

from engine_host.client.sync import connected
from engine_host.core.paths import Folders
from engine_host.protocol.host import HostInfo, HostStay
from engine_host.protocol.operations import table as ops
from sndr_gui.host.process import HostProcess
from tests.integration.host.conftest import RunningHost, wait_for

NewHost = Callable[..., RunningHost]
OWNED = ("--owner-stdin", "--owner", "a program")


def killed(host: RunningHost) -> None:
    """`kill -9`, and the end of what cleans up behind it."""
    host.process.kill()
    host.process.wait(20)
    wait_for(lambda: not host.folders.socket.exists(), "the reaper removes what the host left")


def comes_back() -> tuple[bool, HostInfo, HostProcess]:
    """The window starts a host: whether it is the window's own, and what it says of itself then.

    The window is closed before: what ends with it has ended.
    """

    async def work() -> tuple[bool, HostInfo, HostProcess]:
        window = HostProcess(Folders.resolve())
        address = await window.find_or_start()
        try:
            with connected() as client:
                info = await asyncio.to_thread(client.call, ops.HOST)
        finally:
            await window.finish(asked=False)
        return address.owned, info, window

    return asyncio.run(work())


def quit_host(window: HostProcess) -> None:
    with connected() as client:
        client.call(ops.QUIT_HOST)
    assert window._left is not None
    assert window._left.wait(20) == 0


@pytest.mark.parametrize("was", ["detached", "of a window that let it go"])
def test_one_that_stayed_stays(new_host: NewHost, was: str) -> None:
    if was == "detached":
        host = new_host().connect()
    else:
        host = new_host(*OWNED).connect()
        host.client.call(ops.STAY_HOST, HostStay())
    killed(host)
    owned, info, window = comes_back()
    assert (owned, info.ends_with_window, info.owner) == (False, False, "")
    with connected() as client:
        assert client.call(ops.HOST).pid == info.pid, "the window is closed, and it goes on"
    quit_host(window)


def test_one_of_a_window_is_the_next_windows_own(new_host: NewHost) -> None:
    killed(new_host(*OWNED).connect())
    owned, info, _ = comes_back()
    assert (owned, info.ends_with_window) == (True, True)
    assert not Folders.resolve().token.exists(), "it has ended with the window"


def test_one_that_ended_in_order_is_no_more(new_host: NewHost) -> None:
    host = new_host().connect()
    host.client.call(ops.QUIT_HOST)
    assert host.process.wait(20) == 0
    owned, _, _ = comes_back()
    assert owned
