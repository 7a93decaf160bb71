"""`sndr host logs` and `sndr services logs`: the lines of a unit or a container, as they come."""

import shlex
import time
from collections.abc import Sequence
from contextlib import nullcontext

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.remote.services import EVERY, can_install, chosen, install_command, services_of
from engine_host.cli.start.host import find_or_start
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations import remote_hosts
from engine_host.protocol.operations import services as ops
from engine_host.protocol.remote.hosts import THIS_MACHINE, RemoteMode
from engine_host.protocol.remote.services import (
    Service,
    ServiceLine,
    ServiceLogQuery,
    ServiceLogs,
    ServiceManager,
)

_WAIT = 15.0
_in = click.option(
    "--in", "manager", type=click.Choice([one.value for one in EVERY]), help="systemd, Docker or Podman."
)
_follow = click.option("-f", "--follow", "following", is_flag=True, help="Follow new lines until Ctrl+C.")
_count = click.option(
    "-n",
    "--lines",
    "count",
    type=click.IntRange(1, 5000),
    default=200,
    show_default=True,
    help="Of the newest.",
)


@click.command("logs")
@click.argument("name")
@click.argument("service", required=False)
@_in
@_follow
@_count
@command("sndr host logs gpu", "sndr host logs gpu qwen3-8b --follow")
def host_logs(
    out: Output, name: str, service: str | None, manager: str | None, following: bool, count: int
) -> Exit | None:
    """Print the lines of a unit or a container on NAME; without SERVICE those of the only one of ours.

    The lines of an engine that our engine host runs there: `sndr --host NAME logs`.
    """
    return _printed(out, name, service, manager, following, count)


@click.command("logs")
@click.argument("service", required=False)
@_in
@_follow
@_count
@command("sndr services logs qwen3-8b --follow")
def service_logs(
    out: Output, service: str | None, manager: str | None, following: bool, count: int
) -> Exit | None:
    """Print the lines of a unit or a container here; without SERVICE those of the only one of ours."""
    return _printed(out, THIS_MACHINE, service, manager, following, count)


def _printed(
    out: Output, name: str, service: str | None, manager: str | None, following: bool, count: int
) -> Exit | None:
    managers = EVERY if manager is None else (ServiceManager(manager),)
    with find_or_start() as hold:
        found = _only(hold.client, name, managers, out) if service is None else None
        if found is None and service is not None:
            try:
                found = chosen(hold.client, name, managers, service, out, ours=False)
            except HostError as error:
                raise _or_of_the_engine_host(hold.client, name, error) from error
        assert found is not None
        if following:
            follow_lines(out, hold.client, name, found.manager, found.name, count)
            return None
        told = _asked(hold.client, name, found.manager, found.name, ServiceLogQuery(lines=count))
    if out.as_json:
        out.result(told, "")
        return None
    _print(out, told.lines)
    if not told.lines:
        out.note(f"{found.name} has no line{f': {told.note}' if told.note else ''}.")
    return None


def follow_lines(
    out: Output, client: ControlClient, name: str, manager: ServiceManager, service: str, count: int
) -> None:
    """Print the newest lines of a service and those that come, until Ctrl+C. Raises HostError."""
    told = _asked(client, name, manager, service, ServiceLogQuery(lines=count))
    if told.note:
        out.note(f"{service}: {told.note}")
    # To wait for the next line is what was asked for.
    client.waiting = lambda _operation: nullcontext()
    client.only_watch()
    while True:
        _print(out, told.lines)
        began = time.monotonic()
        asked = ServiceLogQuery(lines=5000, after=told.cursor, wait=_WAIT if told.cursor else 0.0)
        told = _asked(client, name, manager, service, asked)
        if not told.lines and time.monotonic() - began < 1.0:
            # Without a cursor, or where nothing waits: it is not asked without a pause.
            time.sleep(1.0)


def _asked(
    client: ControlClient, name: str, manager: ServiceManager, service: str, asked: ServiceLogQuery
) -> ServiceLogs:
    return client.call(ops.SERVICE_LOGS, asked, name=name, manager=manager.value, service=service)


def _print(out: Output, lines: Sequence[ServiceLine]) -> None:
    for line in lines:
        if out.as_json:
            out.record(line)
            continue
        at = time.strftime("%H:%M:%S ", time.localtime(line.at)) if line.at else ""
        out.result({}, f"{at}{line.text}", verbatim=True)


def _only(client: ControlClient, name: str, managers: Sequence[ServiceManager], out: Output) -> Service:
    page = services_of(client, name, managers, out)
    ours = [one for one in page.services if one.ours]
    if len(ours) == 1:
        return ours[0]
    names = [one.name for one in ours or page.services]
    if names:
        command = "sndr services logs" if name == THIS_MACHINE else f"sndr host logs {name}"
        fix = Fix(text="Name the one that is meant.", command=f"{command} {shlex.quote(names[0])}")
    else:
        words = tr("Install one first.") if can_install(page) else tr("Start an engine without a service.")
        fix = Fix(text=words, command=install_command(page))
    error = HostError(
        Reason.NOT_FOUND if not ours else Reason.BAD_REQUEST,
        "There is no service of ours." if not ours else "There are several services of ours.",
        cause=tr("There are: {names}.", names=", ".join(names)) if names else "",
        fix=fix,
    )
    raise error if names else _or_of_the_engine_host(client, name, error)


def _or_of_the_engine_host(client: ControlClient, name: str, error: HostError) -> HostError:
    """The same error, naming the command for an engine of our engine host there."""
    if name == THIS_MACHINE or error.reason is not Reason.NOT_FOUND:
        return error
    if client.call(remote_hosts.REMOTE_HOST, name=name).mode is not RemoteMode.ENGINE_HOST:
        return error
    fix = Fix(
        text="Engines of our engine host there have their lines with it.",
        command=f"sndr --host {name} logs",
    )
    return HostError.from_problem(error.problem.model_copy(update={"fix": fix}))
