"""The engine host of another machine behind forwarded sockets: found, asked, lost and found again."""

import asyncio
import json
import signal
import socket
import stat
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, ExitStack
from pathlib import Path

import pytest

from engine_host.client.address import RemoteAddress
from engine_host.client.sync import ControlClient
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import HostInfo
from engine_host.protocol.operations import table as ops
from engine_host.protocol.remote.hosts import RemoteHost, RemoteMode
from tests.integration.remote.conftest import Fleet
from tests.integration.remote.machines import Machines
from tests.unit.asynchronous import run, until

Open = Callable[..., AbstractAsyncContextManager[Fleet]]


def ask(shown: RemoteHost) -> HostInfo:
    """Ask the host behind the sockets who it is."""
    assert shown.control_socket is not None
    assert shown.control_token is not None
    address = RemoteAddress(shown.name, Path(shown.control_socket), Path(shown.control_token))
    assert stat.S_IMODE(address.token.stat().st_mode) == stat.S_IMODE(address.socket.stat().st_mode) == 0o600
    with ControlClient(address) as client:
        return client.call(ops.HOST)


def test_it_is_found_asked_and_found_again(fleet: Open, machines: Machines) -> None:
    async def work() -> None:
        async with fleet() as found:
            with ExitStack() as stack:
                found.add("gpu", "gpu", RemoteMode.ENGINE_HOST)
                found.hosts.connect("gpu")
                await found.reach("gpu")
                await until(lambda: found.hosts.shown("gpu").engine_host_problem)
                shown = found.hosts.shown("gpu")
                assert shown.engine_host_problem is not None
                assert shown.engine_host_problem.reason is Reason.HOST_UNREACHABLE
                assert shown.engine_host_problem.fix is not None
                assert shown.engine_host_problem.fix.command == "sndr host install gpu"
                assert shown.control_socket is None

                await asyncio.to_thread(stack.enter_context, machines.engine_host())
                # Who connects again what stands, and was without one, is told of what runs there now.
                shown = await found.hosts.look_again("gpu")
                assert shown.control_socket is not None
                assert shown.endpoint_socket is not None
                first = await asyncio.to_thread(ask, shown)
                assert shown.version == first.program
                await until(lambda: [one.engines_at is not None for one in found.hosts.figures()] == [True])

                await asyncio.to_thread(machines.end_engine_host, signal.SIGKILL)
                gone = await found.hosts.look_again("gpu")
                assert gone.control_socket is None
                assert gone.engine_host_problem is not None
                assert gone.engine_host_problem.message == "The engine host on gpu does not run."
                assert not exists(shown.control_token)
                await asyncio.to_thread(stack.enter_context, machines.engine_host())
                found.hosts.look("gpu")
                await until(lambda: found.hosts.shown("gpu").control_socket)
                second = await asyncio.to_thread(ask, found.hosts.shown("gpu"))
                assert second.run_id != first.run_id

                # As an update: the one before is gone and another one runs before a look has noticed it.
                await asyncio.to_thread(machines.end_engine_host, signal.SIGKILL)
                await asyncio.to_thread(stack.enter_context, machines.engine_host())
                await found.hosts.look_now("gpu", 60.0)
                third = await asyncio.to_thread(ask, found.hosts.shown("gpu"))
                assert third.run_id != second.run_id
                await found.hosts.disconnect("gpu")
                assert found.hosts.shown("gpu").control_socket is None
                assert found.hosts.figures() == []
                assert not exists(shown.control_token)

    run(work())


def exists(path: str | None) -> bool:
    """True if there is such a file."""
    return path is not None and Path(path).exists()


@pytest.mark.parametrize("state", ["stopped", "killed", "without its token"])
def test_one_that_is_installed_is_not_called_missing_whatever_it_lacks(
    fleet: Open, machines: Machines, state: str
) -> None:
    data, folder = machines.far / "data", machines.far / "run"
    (data / "host").mkdir(parents=True)
    # What it leads to is gone: `sndr host update` makes it anew.
    (data / "host" / "current").symlink_to("0.2.0-gone")
    listening = socket.socket(socket.AF_UNIX)
    message = "The engine host on gpu is installed and does not run."
    if state != "stopped":
        folder.mkdir(mode=0o700)
        (data / "host.claim").write_text(json.dumps({"run": str(folder)}), encoding="utf-8")
        listening.bind(str(folder / "control.sock"))
    if state == "without its token":
        listening.listen()
        (folder / "token").touch()
        message = "The token of the engine host on gpu cannot be read."

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct", RemoteMode.ENGINE_HOST)
            found.hosts.connect("gpu")
            await found.reach("gpu")
            await until(lambda: found.hosts.shown("gpu").engine_host_problem)
            problem = found.hosts.shown("gpu").engine_host_problem
            assert problem is not None
            assert problem.message == message
            assert problem.fix is not None
            assert problem.fix.command == "sndr host update gpu"

    with listening:
        run(work())
