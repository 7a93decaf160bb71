"""Why a model is not loaded for a request, or not ended, and what to do then."""

import shlex
from collections.abc import Iterable

from engine_host.core.did_you_mean import meant_or
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr


def unknown(name: str, known: Iterable[str]) -> HostError:
    """Refuse a name by which nothing is loaded."""
    return HostError(
        Reason.NOT_FOUND,
        tr("{name} is not a model that is loaded on demand.", name=name),
        cause="Nobody allowed requests to load it, or not any longer.",
        fix=meant_or(Fix(text="See which are.", command="sndr on-demand list"), name, known),
        evidence={"wanted": name},
    )


def pinned(name: str) -> HostError:
    """Refuse to end one for a request."""
    return HostError(
        Reason.CONFLICT,
        tr("{name} is pinned, and not ended by a request.", name=name),
        cause="Somebody pinned it, so that it stays loaded whatever clients ask.",
        fix=tr("End it with: sndr on-demand unload {name}", name=name),
    )


def started_by_hand(name: str, engine: str) -> HostError:
    """Refuse to end as a loaded one what a person started."""
    return HostError(
        Reason.CONFLICT,
        tr("{name} was started by hand, and is not ended as one that a request loaded.", name=name),
        cause="Requests end only what a request loaded.",
        fix=tr("End it with: sndr stop {name}", name=name),
        evidence={"engine": engine},
    )


def closing() -> HostError:
    """Refuse a load because the program ends."""
    return HostError(
        Reason.CANCELLED,
        "The program is being closed, and loads nothing any more.",
        cause="Its engines end with it, so a model would be loaded for nothing.",
        fix=Fix(text="Start it again.", command="sndr serve"),
    )


def called_off(name: str) -> HostError:
    """Tell those who waited for a load that it was cancelled before its start."""
    return _cancelled(tr("The load of {load} was called off.", load=name), name)


def start_cancelled(name: str) -> HostError:
    """Tell those who waited for a load that its start was cancelled."""
    return _cancelled(tr("The start of {load} was cancelled.", load=name), name)


def _cancelled(message: str, name: str) -> HostError:
    return HostError(
        Reason.CANCELLED,
        message,
        cause="Somebody cancelled its job, or stopped its engine.",
        fix=Fix(text="Ask again, or load it now.", command=f"sndr on-demand load {shlex.quote(name)}"),
    )
