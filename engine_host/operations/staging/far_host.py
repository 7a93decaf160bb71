"""Operations of the engine host on another machine, whose refusals are told as they are typed here."""

from typing import Any

from engine_host.core.errors import HostError
from engine_host.protocol.base import Command, Query
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations.definition import Answer, Operation
from engine_host.protocol.remote.host_command import for_host
from engine_host.protocol.remote.hosts import RemoteMode
from engine_host.remote.control import ask
from engine_host.remote.hosts import RemoteHosts


class FarHost:
    """The control API of one machine's engine host, asked as this machine's own is."""

    def __init__(self, hosts: RemoteHosts, name: str) -> None:
        self.name = name
        self._hosts = hosts

    async def call(
        self, operation: Operation[Any, Answer], asked: Command | Query | None = None, /, **path: str
    ) -> Answer:
        """Carry an operation out there; `path` fills in the names of its path.

        Raises HostError: its own, with commands as they are typed here, and of the connection.
        """
        try:
            return await ask(self._hosts, self.name, operation, asked, **path)
        except HostError as error:
            raise HostError.from_problem(_typed(error.problem, self.name)) from error


def far_host(hosts: RemoteHosts, name: str) -> FarHost:
    """Return the engine host of a machine that is connected.

    Raises HostError: not_found, ssh_lost, unsupported for a machine without one.
    """
    kept = hosts.book.get(name)
    if kept.mode is RemoteMode.AGENTLESS:
        raise HostError(
            Reason.UNSUPPORTED,
            tr(
                "{name} is used without an engine host, and nothing of ours starts or ends engines there.",
                name=name,
            ),
            fix=Fix(text="Let our engine host work there.", command=f"sndr host change {name} --engine-host"),
            evidence={"host": name},
        )
    hosts.connection(name)
    return FarHost(hosts, name)


def _typed(problem: Problem, host: str) -> Problem:
    """Return a problem of that machine with its commands as they are typed here."""
    if problem.fix is None:
        return problem
    fix = problem.fix
    command = for_host(fix.command, host) if fix.command else fix.command
    # What the window would send belongs to the host there, not to the one here.
    changed = fix.model_copy(
        update={"text": for_host(fix.text, host), "command": command, "action": None, "settings": {}}
    )
    return problem.model_copy(update={"fix": changed})
