"""The engines of connected machines, as routes may lead to them: HOST/ENGINE, asked over the connection."""

import asyncio
import shlex
from collections.abc import Iterable, Iterator

from engine_host.gateway.directory import Target
from engine_host.gateway.routing.elsewhere import OtherMachines
from engine_host.protocol.endpoint.connect import EndedWithHost, EndpointModel
from engine_host.protocol.remote.hosts import RemoteHostState, RemoteMode
from engine_host.remote.engine_host_there import control_target, start_again, when_ended
from engine_host.remote.hosts import RemoteHosts

_PREFIX = "/openai"
"""The public endpoint on a control socket: no key of its own, and the same whatever its address is."""
_SLOTS = 64
"""Requests at a time; the other side has the queue and knows its slots."""


class RemoteEngines:
    """The models that endpoints of connected machines answer for; those of their providers are left out."""

    def __init__(self, hosts: RemoteHosts) -> None:
        self._hosts = hosts

    def others(self) -> OtherMachines:
        """Return them as routes see them."""
        return OtherMachines(
            *(self.targets, self.means, self.known, self.why_not, self.command, self.look, self.on_demand)
        )

    def targets(self) -> list[Target]:
        """Return the engines that can be asked now."""
        return list(self._targets())

    def means(self, name: str) -> bool:
        """Return True for a name that begins with a machine that was added."""
        host, separator, engine = name.partition("/")
        return bool(separator and engine) and host in self._hosts.book.all

    def known(self, name: str) -> bool | None:
        """Return True if its machine has such an engine, None while it cannot be asked."""
        host, _, engine = name.partition("/")
        there, running = self._hosts.there(host), self._hosts.running(host)
        if running is not None:
            return any(model.id == engine for model in running)
        if not there.reachable:
            return None
        named = {*there.startable, *(model.id for model in there.models), *(one.name for one in there.ended)}
        return engine in named

    def on_demand(self, name: str) -> bool:
        """Return True if the next request for an engine loads it there."""
        host, _, engine = name.partition("/")
        return any(model.id == engine and model.on_demand for model in self._hosts.there(host).models)

    async def look(self, names: Iterable[str]) -> None:
        """Ask the engine hosts of some engines what runs there now."""
        hosts = {name.partition("/")[0] for name in names if self.means(name)}
        await asyncio.gather(*(self._hosts.look_now(host) for host in hosts))

    def why_not(self, name: str) -> str:
        """Say what hinders an engine that cannot be asked; it is looked for again at once."""
        host, _, engine = name.partition("/")
        self._hosts.look(host)
        shown = self._hosts.shown(host)
        if shown.state is not RemoteHostState.CONNECTED:
            why = shown.problem
            return (
                f"{host} is not connected. {why.message}" if why is not None else f"{host} is not connected."
            )
        if shown.mode is not RemoteMode.ENGINE_HOST:
            return f"{engine} does not answer on {host}."
        if shown.control_socket is None:
            problem = shown.engine_host_problem
            return (
                problem.message if problem is not None else f"The engine host on {host} is being looked for."
            )
        if (ended := self._ended(host, engine)) is not None:
            at = when_ended(ended)
            when = f" ({at})" if at else ""
            return f"{engine} ended with the engine host on {host}{when}, and does not come back by itself."
        return f"{engine} does not run on {host}."

    def command(self, name: str) -> str:
        """Return the command that would help."""
        host, _, engine = name.partition("/")
        there = self._hosts.there(host)
        if self._hosts.running(host) is not None:
            return f"sndr host facts {host}"
        if there.reachable and (ended := self._ended(host, engine)) is not None:
            return start_again(host, ended)
        if there.reachable:
            return shlex.join(["sndr", "--host", host, "run", engine])
        fix = there.problem.fix if there.problem is not None else None
        return (fix.command if fix is not None else None) or f"sndr host connect {host}"

    def _ended(self, host: str, engine: str) -> EndedWithHost | None:
        return next((one for one in self._hosts.there(host).ended if one.name == engine), None)

    def _targets(self) -> Iterator[Target]:
        for name, there, connection in self._hosts.reachable():
            for model in there.models:
                if model.provider is None:
                    yield _target(control_target(connection, there.token), name, model)
        for name in self._hosts.agentless():
            for running in self._hosts.running(name) or ():
                yield running.target(name)


def _target(asked: Target, host: str, model: EndpointModel) -> Target:
    return Target(
        engine=f"host:{host}/{model.id}",
        name=f"{host}/{model.id}",
        slots=_SLOTS,
        context=model.context,
        created_at=0.0,
        socket=asked.socket,
        key=asked.key,
        owned_by=host,
        embeddings=not model.chat,
        fill_in_the_middle=False,
        tools=model.tools,
        images=model.images,
        native_infill=False,
        usage_on_request=True,
        known_as=model.id,
        provider=host,
        machine=host,
        prefix=_PREFIX,
    )
