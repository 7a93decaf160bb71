"""Choose the llama.cpp server of the next start: the one built here, the prebuilt one, or the user's own."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.engines.llamacpp.build.builder import installed
from engine_host.engines.llamacpp.servers import (
    ServerCapabilities,
    ServerCommand,
    ServerProber,
    build_fix,
    built_command,
    own_command,
    prebuilt_command,
)
from engine_host.protocol.engines import ServerInfo
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import ServerChoice

_log = logging.getLogger(__name__)
# The built server knows this processor; the prebuilt one is there so that nobody waits for a compiler.
_PREFERRED = (ServerChoice.BUILT, ServerChoice.PREBUILT)


class LlamaCppServers:
    """The servers of this machine, probed when they are asked for."""

    def __init__(self, data: Path, own_path: Callable[[], str | None]) -> None:
        self._data = data
        self._own_path = own_path
        self._prober = ServerProber()
        self._probing = asyncio.Lock()

    async def find(self, choice: ServerChoice) -> ServerCapabilities:
        """A server that works.

        `auto` takes the built one, else the prebuilt one. Raises HostError(engine_unusable) when the
        chosen one is not there or does not run.
        """
        if choice is not ServerChoice.AUTO:
            return await self._probe(self._command(choice))
        broken: HostError | None = None
        for candidate in _PREFERRED:
            try:
                return await self._probe(self._command(candidate))
            except HostError as error:
                _log.debug("%s server: %s", candidate.value, error.problem.message)
                if error.reason is not Reason.NOT_FOUND:
                    broken = error
        raise HostError(
            Reason.ENGINE_UNUSABLE,
            "No llama.cpp server works on this machine.",
            cause=broken.problem.message
            if broken
            else "The prebuilt package is not installed and nothing was built.",
            fix=build_fix(tr("Build llama.cpp for this machine.")),
            evidence=broken.problem.evidence if broken else {},
        )

    async def all(self) -> tuple[ServerInfo, ...]:
        """Every kind of server, with what it can do or why it cannot run."""
        infos = []
        for choice in (ServerChoice.PREBUILT, ServerChoice.BUILT, ServerChoice.OWN):
            if choice is ServerChoice.OWN and not self._own_path():
                continue
            try:
                infos.append((await self._probe(self._command(choice))).info())
            except HostError as error:
                present = error.reason is not Reason.NOT_FOUND
                infos.append(ServerInfo(choice=choice, present=present, problem=error.problem))
        return tuple(infos)

    async def next_choice(self, preferred: ServerChoice) -> ServerChoice | None:
        """Return the server of the next start for this setting; None when none works."""
        try:
            return (await self.find(preferred)).choice
        except HostError:
            return None

    def _command(self, choice: ServerChoice) -> ServerCommand:
        command: ServerCommand | None
        if choice is ServerChoice.OWN:
            path = self._own_path()
            if not path:
                raise HostError(
                    Reason.NOT_FOUND,
                    "No llama-server of your own is set.",
                    cause="A start asks for the server of your own, and the settings name none.",
                    fix=Fix(text="Set its path.", command="sndr settings set engine.own_server PATH"),
                )
            return own_command(files.expanded(path))
        if choice is ServerChoice.PREBUILT:
            command = prebuilt_command()
            fix = Fix(text="Set the program up again, in its folder.", command="make setup")
            reason = tr("The prebuilt server (package xllamacpp) is not installed.")
        else:
            builds = installed(self._data)
            command = built_command(builds[0]) if builds else None
            fix = build_fix(tr("Build it once."))
            reason = tr("llama.cpp has not been built on this machine.")
        if command is None:
            raise HostError(Reason.NOT_FOUND, reason, fix=fix)
        return command

    async def _probe(self, command: ServerCommand) -> ServerCapabilities:
        # One at a time: two windows that ask at once must not start six processes.
        async with self._probing:
            return await self._prober.probe(command)
