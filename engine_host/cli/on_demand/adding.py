"""A start that is left to requests instead of being carried out: its options, and how it is told."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from engine_host.cli.output import Output
from engine_host.cli.param_types import FiniteRange
from engine_host.cli.start.consent import with_consent
from engine_host.cli.start.host import find_or_start
from engine_host.cli.start.options import with_option
from engine_host.cli.start.suggestions import with_near_names
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.core.sizes import duration
from engine_host.protocol.endpoint.on_demand import DEFAULT_KEEP_ALIVE, NEVER, AddOnDemand, OnDemandModel
from engine_host.protocol.launch.plans import LaunchRequest
from engine_host.protocol.operations import endpoint as endpoint_ops

MINUTE = 60.0
_OPTIONS = (
    click.option(
        "--keep-alive",
        "keep_alive",
        type=FiniteRange(-1, 525_600),
        metavar="MINUTES",
        help=f"On demand: stop it after this long without a request; 0 at once, -1 never "
        f"(default: {DEFAULT_KEEP_ALIVE / MINUTE:g}).",
    ),
    click.option("--pin", is_flag=True, help="On demand: never stop it for that, or for room."),
    click.option(
        "--at-start",
        is_flag=True,
        help="On demand: load it when the host starts, too; so it comes back after a restart of the machine.",
    ),
)


@dataclass(frozen=True)
class Stay:
    """The time for which a model is to stay, as it was given, and whether its host loads it by itself."""

    keep_alive: float | None
    pinned: bool
    at_start: bool

    @property
    def said(self) -> bool:
        """True if anything was."""
        return self.keep_alive is not None or self.pinned or self.at_start


on_demand_option = click.option(
    "--on-demand", "on_demand", is_flag=True, help="Start nothing now: the first request for it loads it."
)


def keep_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of how long a model stays, as `stay`."""

    @functools.wraps(function)
    def bundled(*given: Any, keep_alive: float | None, pin: bool, at_start: bool, **more: Any) -> Any:
        return function(*given, stay=Stay(keep_alive, pin, at_start), **more)

    for option in reversed(_OPTIONS):
        bundled = option(bundled)
    return bundled


def seconds_of(minutes: float | None) -> float:
    """Return a keep-alive in seconds; below 0 is never."""
    if minutes is None:
        return DEFAULT_KEEP_ALIVE
    return NEVER if minutes < 0 else minutes * MINUTE


def stays(model: OnDemandModel) -> str:
    """Say how long a model stays without a request, and whether its host loads it by itself."""
    return f"{lasts(model)}, loaded with the host" if model.at_start else lasts(model)


def lasts(model: OnDemandModel) -> str:
    """Say how long a model stays without a request."""
    if model.pinned:
        return "pinned"
    if model.keep_alive < 0:
        return "for ever"
    return "not at all" if model.keep_alive == 0 else duration(model.keep_alive)


def rest(model: OnDemandModel) -> str:
    """Say in words of a sentence what becomes of a model that nobody asks."""
    return "it is pinned and stays" if model.pinned else f"without a request it stays {lasts(model)}"


def add(
    out: Output,
    request_of: Callable[[ControlClient], LaunchRequest],
    stay: Stay,
    accept: str | None = None,
) -> None:
    """Let requests load this start from now on, and say so. Raises HostError."""
    with find_or_start() as hold:
        launch = request_of(hold.client)
        asked = AddOnDemand(
            launch=launch,
            keep_alive=seconds_of(stay.keep_alive),
            pinned=stay.pinned,
            at_start=stay.at_start,
        )

        def send(consent: str | None) -> OnDemandModel:
            return hold.client.call(endpoint_ops.ADD_ON_DEMAND, asked.model_copy(update={"consent": consent}))

        try:
            again = [
                "sndr",
                "on-demand",
                "add",
                *(["--preset", launch.preset] if launch.preset else [launch.model]),
            ]
            added = with_consent(out, accept, again, send)
        except HostError as error:
            named = with_option(error, launch)
            raise with_near_names(hold.client, named, launch.model or launch.preset or "") from error
        lasting = not hold.started_here
    also = ", and when the host starts" if added.at_start else ""
    text = f"{added.name} is loaded when a request asks for it{also}"
    out.result(added, f"{text}; {rest(added)}.")
    if not lasting:
        out.note("No host runs that could load it now: start one with sndr serve.")


def refuse_with(options: dict[str, bool]) -> None:
    """Raise click.UsageError for options that are of a start now."""
    if given := [name for name, value in options.items() if value]:
        raise click.UsageError(f"{' and '.join(given)} cannot go with --on-demand, which starts nothing now.")


def refuse_without(stay: Stay) -> None:
    """Raise click.UsageError for options that only mean something with --on-demand."""
    if stay.said:
        raise click.UsageError("--keep-alive, --pin and --at-start need --on-demand.")
