"""A start that is left to requests instead of being carried out: its options, and how it is told."""

from collections.abc import Callable
from typing import Any

import click

from engine_host.cli.output import Output
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
        type=click.FloatRange(-1, 525_600),
        metavar="MINUTES",
        help=f"On demand: stop it after this long without a request; 0 at once, -1 never "
        f"(default: {DEFAULT_KEEP_ALIVE / MINUTE:g}).",
    ),
    click.option("--pin", is_flag=True, help="On demand: never stop it for that, or for room."),
)

on_demand_option = click.option(
    "--on-demand", "on_demand", is_flag=True, help="Start nothing now: the first request for it loads it."
)


def keep_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of how long a model stays."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def seconds_of(minutes: float | None) -> float:
    """Return a keep-alive in seconds; below 0 is never."""
    if minutes is None:
        return DEFAULT_KEEP_ALIVE
    return NEVER if minutes < 0 else minutes * MINUTE


def stays(model: OnDemandModel) -> str:
    """Say how long a model stays without a request."""
    if model.pinned:
        return "pinned"
    if model.keep_alive < 0:
        return "for ever"
    return "not at all" if model.keep_alive == 0 else duration(model.keep_alive)


def add(
    out: Output,
    request_of: Callable[[ControlClient], LaunchRequest],
    keep_alive: float | None,
    pin: bool,
    accept: str | None = None,
) -> None:
    """Let requests load this start from now on, and say so. Raises HostError."""
    with find_or_start() as hold:
        launch = request_of(hold.client)
        asked = AddOnDemand(launch=launch, keep_alive=seconds_of(keep_alive), pinned=pin)

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
    text = f"{added.name} is loaded when a request asks for it"
    out.result(added, f"{text}; without one it stays {stays(added)}.")
    if not lasting:
        out.note("No host runs that could load it now: start one with sndr serve.")


def refuse_with(options: dict[str, bool]) -> None:
    """Raise click.UsageError for options that are of a start now."""
    if given := [name for name, value in options.items() if value]:
        raise click.UsageError(f"{' and '.join(given)} cannot go with --on-demand, which starts nothing now.")


def refuse_without(keep_alive: float | None, pin: bool) -> None:
    """Raise click.UsageError for options that only mean something with --on-demand."""
    if keep_alive is not None or pin:
        raise click.UsageError("--keep-alive and --pin need --on-demand.")
