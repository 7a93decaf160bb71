"""The machine of a service: another one over its connection, or this one, asked in just the same way."""

from collections.abc import Mapping
from typing import Any

from engine_host.core.processes.own_programs import OwnProgram, command_of
from engine_host.protocol.errors import Reason
from engine_host.remote.install.machine import SHARED, Answer, Machine, Steps, do_step, modules_in
from engine_host.remote.run import Feed, Interpreter, RemoteOutcome, RemoteScript, Take, fed, run_over

_DAYS = 3 * 86400.0
STEPS = Steps(
    (
        *SHARED,
        "engine_host.deploy.watchdog_program",
        *modules_in(
            "engine_host.remote.services.there",
            "managers",
            "files",
            "models",
            "running",
            "reading",
            "power",
            "steps",
        ),
    ),
    {"fetch": _DAYS, "start": 900.0, "act": 400.0, "undo": 900.0, "remove": 600.0, "answers": 150.0},
    {
        Reason.CONFLICT: "Look at what is there; --replace writes over what somebody changed.",
        Reason.DOWNLOAD_FAILED: "See that it can be reached from there, and do it again: it goes on.",
        Reason.NOT_FOUND: "See which services are there.",
        Reason.UNSUPPORTED: "Install and start it there, or let this user use it.",
    },
)


async def ask(machine: Machine, step: str, kind: type[Answer], **asked: Any) -> Answer:
    """Do a step on services there; its answer. Raises HostError, of the connection too."""
    return await do_step(machine, STEPS, step, kind, asked)


class ThisMachine:
    """Runs our programs on this machine, as it would over there."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    async def run(
        self,
        name: str,
        script: RemoteScript,
        data: bytes = b"",
        *,
        seconds: float = 30.0,
        most: int = 4 << 20,
    ) -> RemoteOutcome:
        """Run one with data on its standard input."""
        return await self.run_fed(name, script, fed(script.sent(data), held=script.held), seconds, most)

    async def run_fed(
        self,
        name: str,
        script: RemoteScript,
        feed: Feed,
        seconds: float | None,
        most: int = 4 << 20,
        take: Take | None = None,
    ) -> RemoteOutcome:
        """Run one with `feed` writing its standard input."""
        # Not by the words for over there: they name python3, which not every machine has.
        python = script.interpreter is Interpreter.PYTHON
        argv = command_of(OwnProgram.FED_SCRIPT) if python else ("/bin/sh", "-c", script.interpreter.value)
        return await run_over(argv, self._environment, feed, seconds, most, take)
