"""Engines of other machines that a person added: asked through their connection, by routes that name them.

A route names one as HOST/ENGINE, which never means an engine here: nothing takes the place of what was meant.
"""

import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from engine_host.gateway.directory import Target
from engine_host.gateway.error_answers import EndpointError
from engine_host.protocol.errors import Reason


def _nowhere(name: str) -> str:
    return f"{name} is on no machine that was added."


async def _unchanged(_names: Iterable[str]) -> None:
    """Ask nobody."""


@dataclass(frozen=True)
class OtherMachines:
    """The machines as routes see them.

    `targets` are the engines that answer now, each by HOST/ENGINE; `means` tells whether a name is one of a
    machine that was added, `known` whether its engine is there, None where that cannot be told now; `why_not`
    says what hinders one that cannot be asked, and `command` what would help. `look` asks the machines of
    some names anew, for as long as somebody waits for it. `on_demand`: the next request loads it.
    """

    targets: Callable[[], Sequence[Target]] = tuple
    means: Callable[[str], bool] = lambda _name: False
    known: Callable[[str], bool | None] = lambda _name: None
    why_not: Callable[[str], str] = _nowhere
    command: Callable[[str], str] = lambda _name: "sndr host add NAME USER@HOST"
    look: Callable[[Iterable[str]], Awaitable[None]] = _unchanged
    on_demand: Callable[[str], bool] = lambda _name: False

    def advice(self, name: str) -> str:
        """Return what hinders an engine, and the command that would help."""
        return f"{self.why_not(name)} Try: {self.command(name)}"


NO_OTHERS = OtherMachines()


def unreachable(target: Target) -> EndpointError:
    """Return the fault of a connection that stands no more, or behind which nobody listens."""
    return EndpointError(
        503,
        "host_not_connected",
        f"{target.name} is answered by {target.machine}, and there is no connection to it now. Try: "
        f"sndr host connect {target.machine}",
        Reason.SSH_LOST,
    )


def not_running(target: Target) -> EndpointError:
    """Return the fault of a machine on which no engine runs any more, as it has just said."""
    return EndpointError(
        503,
        "route_target_not_running",
        f"No engine runs on {target.machine} now. Try: "
        f"{shlex.join(['sndr', '--host', str(target.machine), 'run', target.engine_name])}",
        Reason.NO_ENGINE_RUNS,
        "model",
    )


def ended(target: Target) -> EndpointError:
    """Return the fault of a connection that broke before the answer was complete."""
    return EndpointError(
        502,
        "host_connection_lost",
        f"The connection to {target.machine} was lost, or its engine ended, before the answer for "
        f"{target.name} was complete. "
        f"Look: sndr host connect {target.machine}",
        Reason.SSH_LOST,
    )


def silent(target: Target) -> EndpointError:
    """Return the fault of a machine that sends nothing for too long."""
    return EndpointError(
        504,
        "host_silent",
        f"{target.machine} has sent nothing for {target.name} for too long, and was given up. Look: "
        f"sndr host connect {target.machine}",
        Reason.SSH_LOST,
    )


def restarted(target: Target) -> EndpointError:
    """Return the fault of an engine host that is another one than a moment ago."""
    return EndpointError(
        503,
        "host_restarted",
        f"The engine host of {target.machine} was started anew; it is asked again in a moment.",
        Reason.HOST_RESTARTED,
    )
