"""The words about an install that was cancelled: what they say is so. The machine is FAKE."""

import asyncio
from typing import Any, cast

import pytest

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.deploy import RenderTarget
from engine_host.protocol.launch.plans import LaunchRequest
from engine_host.protocol.remote.services import InstallService, ServiceManager
from engine_host.remote.install.machine import Machine
from engine_host.remote.run import Runner
from engine_host.remote.services import installing
from engine_host.remote.services.answers import ComparedFile, FoundService, Inspected, Put, Undone, Usable
from engine_host.remote.services.plan import Wanted, wanted_of
from tests.unit.deploy import samples


def wanted() -> Wanted:
    asked = InstallService(launch=LaunchRequest(model="", preset="demo-llamacpp"))
    deployed = samples.deployed(samples.wanted_of("demo-llamacpp"), RenderTarget.SYSTEMD)
    return wanted_of("gpu", asked, deployed, 4096)


def looked_at(of: Wanted) -> Inspected:
    manager = ServiceManager.SYSTEMD
    return Inspected(
        home="/srv/a",
        folder="/srv/a/f",
        usable=Usable(manager=manager, usable=True),
        files=tuple(ComparedFile(path=f"/f/{one.name}", state="new") for one in of.files),
        gone=(),
        service=FoundService(manager=manager, name=of.name, there=False),
        programs={of.deployment.program[0]: "/usr/bin/it"},
    )


@pytest.mark.parametrize(
    ("undo", "undone", "left"),
    [
        (Undone(undone=True, running=False, first=True), "Nothing of it is left.", ""),
        (Undone(undone=True, running=True, first=False), "What ran before runs again.", ""),
        (Undone(undone=False, running=False, first=False), "There was nothing to take back.", ""),
        (Reason.SSH_LOST, "", "sndr host unit list gpu"),
        (Reason.CONFLICT, "", "sndr host unit list gpu"),
    ],
)
def test_only_what_was_taken_back_is_said_to_be(
    monkeypatch: pytest.MonkeyPatch, undo: Undone | Reason, undone: str, left: str
) -> None:
    of, said = wanted(), [("", "")]
    begun = asyncio.Event()

    async def ask(_machine: Machine, step: str, _kind: object, **_asked: Any) -> object:
        match step:
            case "inspect":
                return looked_at(of)
            case "put":
                return Put(made=(), written=(), removed=())
            case "undo" if isinstance(undo, Undone):
                return undo
            case "undo":
                assert isinstance(undo, Reason)
                raise HostError(undo, "It is away.")
        begun.set()
        await asyncio.sleep(1000)
        raise AssertionError

    async def cancel() -> None:
        machine = Machine("gpu", cast(Runner, None))
        work = installing.install(
            machine, of, lambda *_: None, lambda undone, left: said.append((undone, left))
        )
        task = asyncio.create_task(work)
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    monkeypatch.setattr(installing, "ask", ask)
    asyncio.run(cancel())
    assert said[-1][0] == undone
    assert left in said[-1][1]
    assert bool(said[-1][1]) is bool(left)
    assert "is away" in said[-1][1] or not left
