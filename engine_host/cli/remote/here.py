"""`sndr launch PRESET --in docker`: a start carried out by a container or a unit of this machine."""

import re
from collections.abc import Mapping

import click

from engine_host.cli.output import Exit, Output
from engine_host.cli.remote.logs import follow_lines
from engine_host.cli.remote.services import install
from engine_host.cli.render import RenderOptions
from engine_host.cli.start.host import find_or_start
from engine_host.protocol.launch.plans import LaunchRequest
from engine_host.protocol.remote.hosts import THIS_MACHINE
from engine_host.protocol.remote.services import ServiceDone, ServiceManager


def refuse_with_service(given: Mapping[str, bool]) -> None:
    """Raise click.UsageError for options that mean nothing for a container or a unit."""
    if conflicting := [name for name, value in given.items() if value]:
        raise click.UsageError(f"{' and '.join(conflicting)} cannot go with --in.")


def _word(name: str | None) -> str | None:
    """A model's public name as a service may be called; None for one that leaves nothing."""
    return re.sub("[^a-z0-9]+", "-", (name or "").lower()).strip("-")[:40] or None


def launch_as_service(
    out: Output,
    manager: ServiceManager,
    launch: LaunchRequest,
    rendering: RenderOptions,
    dry_run: bool,
    accept: str | None,
    detach: bool,
) -> Exit | None:
    """Install a start as a service of this machine; unless detached, its lines follow until Ctrl+C."""
    if rendering.output is not None or (rendering.address, rendering.hardware) != ("127.0.0.1", None):
        raise click.UsageError("--output, --address and --hardware go with --render, not with --in.")
    asked = {
        "launch": launch.model_copy(update={"instead_of": None}),
        "service_name": _word(launch.name),
        "port": rendering.port,
        "force": rendering.force,
        "replace": rendering.overwrite or launch.instead_of is not None,
        "dry_run": dry_run,
        "accept": accept,
    }
    done = install(out, THIS_MACHINE, manager, asked)
    if not isinstance(done, ServiceDone):
        return done
    if detach or out.as_json:
        return None
    out.note("Its lines follow; Ctrl+C ends this command, and the service goes on.")
    with find_or_start() as hold:
        follow_lines(out, hold.client, THIS_MACHINE, done.manager, done.name, 20)
    return None
