"""Our host on another machine: planned, installed, updated, taken back and removed, as jobs."""

import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.core.paths import Folders
from engine_host.operations.performs import performs
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.operations import remote_install as ops
from engine_host.protocol.remote.hosts import RemoteMode
from engine_host.protocol.remote.install import InstallOnHost, RemoteInstalled, RemoteInstallPlan
from engine_host.remote.hosts import RemoteHosts
from engine_host.remote.install import installing
from engine_host.remote.install.installing import Left, Tell, Workplace
from engine_host.remote.install.machine import Machine
from engine_host.remote.transfer.steadily import steadily

_SEEN = 20.0
"""Seconds for the look at what runs there once something was changed; it takes less than two."""


class RemoteInstallOperations:
    """The installs; what changes one host is done one after the other."""

    def __init__(self, hosts: RemoteHosts, jobs: JobRunner, folders: Folders) -> None:
        self._hosts = hosts
        self._jobs = jobs
        cache = folders.cache / "remote-install"
        self._workplace = Workplace(cache / "wheels", cache / "packages")

    @performs(ops.PLAN_HOST_INSTALL)
    async def plan(self, name: str, asked: InstallOnHost) -> RemoteInstallPlan:
        """Return what an install would change. Raises HostError, of the connection too."""
        return await installing.planned(self._machine(name), asked, self._workplace)

    @performs(ops.INSTALL_HOST)
    def install(self, name: str, asked: InstallOnHost) -> Job:
        """Install our host there. Raises HostError: not_found, ssh_lost."""
        machine = self._machine(name)
        return self._start(
            JobKind.HOST_INSTALL,
            f"Install the engine host on {name}",
            name,
            _command("install", name, asked),
            installing.steps_of(asked),
            lambda tell, left: installing.install(machine, asked, self._workplace, tell, left),
        )

    @performs(ops.UPDATE_HOST)
    def update(self, name: str, asked: InstallOnHost) -> Job:
        """Update our host there. Raises HostError: not_found, ssh_lost."""
        machine = self._machine(name)
        return self._start(
            JobKind.HOST_UPDATE,
            f"Update the engine host on {name}",
            name,
            _command("update", name, asked),
            installing.steps_of(asked),
            lambda tell, left: installing.install(machine, asked, self._workplace, tell, left, update=True),
        )

    @performs(ops.HOST_BACK)
    def back(self, name: str) -> Job:
        """Let the release before run again. Raises HostError: not_found, ssh_lost."""
        machine = self._machine(name)
        return self._start(
            JobKind.HOST_UPDATE,
            f"Take back the update of the engine host on {name}",
            name,
            f"sndr host update {shlex.quote(name)} --back",
            installing.BACK_STEPS,
            lambda tell, left: installing.back(machine, tell, left),
        )

    @performs(ops.PLAN_HOST_BACK)
    async def plan_back(self, name: str) -> RemoteInstallPlan:
        """Return what going back would change. Raises HostError: not_found, and of the connection."""
        return await installing.planned_back(self._machine(name))

    @performs(ops.PLAN_HOST_UNINSTALL)
    async def plan_removal(self, name: str) -> RemoteInstallPlan:
        """Return what an uninstall would remove. Raises HostError: not_found, and of the connection."""
        return await installing.planned_removal(self._machine(name))

    @performs(ops.UNINSTALL_HOST)
    def uninstall(self, name: str) -> Job:
        """Remove our host there. Raises HostError: not_found, ssh_lost."""
        machine = self._machine(name)
        return self._start(
            JobKind.HOST_UNINSTALL,
            f"Remove the engine host from {name}",
            name,
            f"sndr host uninstall {shlex.quote(name)} --yes",
            installing.REMOVAL_STEPS,
            lambda tell, left: installing.uninstall(machine, tell, left),
        )

    def _machine(self, name: str) -> Machine:
        kept = self._hosts.connection(name).host
        if kept.mode is RemoteMode.AGENTLESS:
            raise HostError(
                Reason.CONFLICT,
                tr("{name} is kept as agentless: nothing is installed or removed by that name.", name=name),
                cause="What runs there may be another entry's, which leads to the same machine.",
                fix=Fix(
                    text="Let our engine host work there.",
                    command=f"sndr host change {name} --engine-host",
                ),
            )
        return Machine(name, self._hosts, lambda work, waits: steadily(self._hosts, name, work, waits))

    def _start(
        self,
        kind: JobKind,
        title: str,
        name: str,
        command: str,
        steps: Sequence[str],
        work: Callable[[Tell, Left], Awaitable[RemoteInstalled]],
    ) -> Job:
        async def carry_out(control: JobControl) -> dict[str, Any]:
            def tell(step: str, detail: str, share: float | None) -> None:
                control.step(steps.index(step) + 1, len(steps), step, detail, share)

            def left(sentence: str) -> None:
                control.left = sentence

            try:
                done = await work(tell, left)
            except HostError:
                await self._hosts.look_now(name, _SEEN)
                raise
            finally:
                # One that was cancelled has changed what runs there too.
                self._hosts.look(name)
            # Whoever is told of its end asks next what runs there.
            await self._hosts.look_now(name, _SEEN)
            control.left = ""
            return done.model_dump(mode="json")

        return self._jobs.start(kind, title, f"host {name}", command, carry_out)


def _command(verb: str, name: str, asked: InstallOnHost) -> str:
    options = [f"--{option}" for option in ("offline", "demo") if getattr(asked, option)]
    return shlex.join(["sndr", "host", verb, name, *options])
