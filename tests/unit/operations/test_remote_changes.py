"""What changes another machine has it looked at when it ends, however it ends; the machine is FAKE."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from engine_host.core.errors import HostError
from engine_host.core.jobs import JobRunner
from engine_host.core.paths import Folders
from engine_host.core.store import Store
from engine_host.operations.deploy import DeployOperations
from engine_host.operations.remote.install import RemoteInstallOperations
from engine_host.operations.remote.units import Machines, ServiceOperations
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job, JobState
from engine_host.protocol.remote.hosts import RemoteMode
from engine_host.protocol.remote.install import InstallOnHost
from engine_host.protocol.remote.services import ActOnService, RemoveService, ServiceAction
from engine_host.remote.hosts import RemoteHosts
from tests.unit.asynchronous import run


class FakeHosts:
    """One connected machine on which every step fails, once it is let go on."""

    def __init__(self) -> None:
        self.looked_at: list[str] = []
        self.asked, self.answers = asyncio.Event(), asyncio.Event()

    def connection(self, _name: str) -> SimpleNamespace:
        return SimpleNamespace(host=SimpleNamespace(mode=RemoteMode.ENGINE_HOST))

    async def run(self, *_asked: object, **_bounds: object) -> None:
        self.asked.set()
        await self.answers.wait()
        raise HostError(Reason.SSH_FAILED, "gpu is upset.")

    def look(self, name: str) -> None:
        self.looked_at.append(name)


Begin = Callable[[RemoteInstallOperations, ServiceOperations], Job]
_ACT = ActOnService(action=ServiceAction.STOP)
CHANGES: dict[str, Begin] = {
    "install": lambda hosts, _: hosts.install("gpu", InstallOnHost()),
    "update": lambda hosts, _: hosts.update("gpu", InstallOnHost()),
    "back": lambda hosts, _: hosts.back("gpu"),
    "uninstall": lambda hosts, _: hosts.uninstall("gpu"),
    "stop a service": lambda _, services: services.act("gpu", "systemd", "sndr-x", _ACT),
    "remove a service": lambda _, services: services.remove("gpu", "systemd", "sndr-x", RemoveService()),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("end", [JobState.FAILED, JobState.CANCELLED])
def test_a_change_that_did_not_succeed_has_its_machine_looked_at(
    tmp_path: Path, change: str, end: JobState
) -> None:
    async def work() -> None:
        hosts = cast(RemoteHosts, fake)
        jobs = JobRunner(lambda _event: None, Store(tmp_path / "kept.db"))
        installs = RemoteInstallOperations(hosts, jobs, Folders(*[tmp_path] * 4))
        services = ServiceOperations(Machines(hosts, {}), jobs, cast(DeployOperations, None))
        job = CHANGES[change](installs, services)
        await asyncio.wait_for(fake.asked.wait(), 60.0)
        if end is JobState.CANCELLED:
            jobs.cancel(job.id)
        else:
            fake.answers.set()
        ended = await jobs.ended(job.id)
        assert ended.state is end

    fake = FakeHosts()
    run(work())
    assert fake.looked_at == ["gpu"]
