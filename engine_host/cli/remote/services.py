"""`sndr host unit` and `sndr host container`, and `sndr services` for this machine: units and containers."""

import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from engine_host.cli.output import Exit, Output, command, echo
from engine_host.cli.remote.connecting import connect
from engine_host.cli.remote.install import change_lines
from engine_host.cli.start.consent import accept_option, with_consent
from engine_host.cli.start.host import find_or_start
from engine_host.cli.start.options import LaunchOptions, launch_options
from engine_host.cli.text.job_progress import begin
from engine_host.cli.text.plan import finding_lines
from engine_host.cli.text.tables import table
from engine_host.cli.text.typed_again import typed_again
from engine_host.cli.text.whole_help import WholeHelp
from engine_host.client.sync import ControlClient
from engine_host.core.did_you_mean import near_names
from engine_host.core.errors import HostError
from engine_host.core.findings.text import ended
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.operations import services as ops
from engine_host.protocol.remote.hosts import THIS_MACHINE
from engine_host.protocol.remote.services import (
    ActOnService,
    InstallService,
    RemoveService,
    Service,
    ServiceAction,
    ServiceDone,
    ServiceManager,
    ServicePage,
    ServicePlan,
    ServiceState,
)

UNITS = (ServiceManager.SYSTEMD,)
CONTAINERS = (ServiceManager.DOCKER, ServiceManager.PODMAN)
EVERY = (*UNITS, *CONTAINERS)
_in = click.option(
    "--in", "manager", type=click.Choice([one.value for one in CONTAINERS]), help="Docker or Podman."
)
_in_any = click.option(
    "--in", "manager", type=click.Choice([one.value for one in EVERY]), help="systemd, Docker or Podman."
)
_dry_run = click.option("--dry-run", is_flag=True, help="Print what would change there, and change nothing.")
_replace = click.option(
    "--replace", is_flag=True, help="Also what somebody changed there since, and another start of that name."
)
_WORDS = {
    ServiceAction.START: "Start a service of ours, and see that it answers.",
    ServiceAction.STOP: "Stop a service of ours; its files stay.",
    ServiceAction.RESTART: "Restart a service of ours, and see that it answers.",
    ServiceAction.ENABLE: "Let a unit of ours start with the machine.",
    ServiceAction.DISABLE: "Let a unit of ours not start with the machine; it goes on running now.",
}


def _group(name: str, text: str, managers: Sequence[ServiceManager], *, here: bool) -> click.Group:
    """A group of commands on the services of a machine, which is the first argument unless it is this one."""
    group = WholeHelp(name, help=text)
    typed = f"sndr {name}" if here else f"sndr host {name}"
    where = "" if here else " gpu"
    choice = _in_any if managers == EVERY else _in
    several = len(managers) > 1

    def made(function: Callable[..., Any], *, named: bool = True) -> Callable[..., Any]:
        """Give a command its machine, its service, and --in where there is a choice."""
        if named:
            function = click.argument("service")(function)
        if not here:
            function = click.argument("name")(function)
        return choice(function) if several else function

    def wanted(manager: str | None) -> Sequence[ServiceManager]:
        return managers if manager is None else (ServiceManager(manager),)

    def show(out: Output, name: str = THIS_MACHINE, manager: str | None = None) -> Exit | None:
        with find_or_start() as hold:
            page = services_of(hold.client, name, wanted(manager), out)
        out.result(page, _lines(page))
        return None

    show.__doc__ = "Print what is there: ours with their state, and those of others, which are left alone."
    group.add_command(click.command("list")(made(command(f"{typed} list{where}")(show), named=False)))
    for action in ServiceAction:
        if action in (ServiceAction.ENABLE, ServiceAction.DISABLE) and ServiceManager.SYSTEMD not in managers:
            continue
        group.add_command(_action(action, f"{typed} {action.value}{where} qwen3-8b", made, wanted))

    def removal(
        out: Output,
        service: str,
        dry_run: bool,
        yes: bool,
        replace: bool,
        name: str = THIS_MACHINE,
        manager: str | None = None,
    ) -> Exit | None:
        asked = RemoveService(replace=replace)
        with find_or_start() as hold:
            found = chosen(hold.client, name, wanted(manager), service, out, ours=True)
            which = {"name": name, "manager": found.manager.value, "service": found.name}
            if dry_run or not yes:
                plan = hold.client.call(ops.PLAN_SERVICE_REMOVAL, asked, **which)
                if dry_run:
                    return planned(out, plan)
                echo("\n".join(_plan_lines(plan)), err=True)
                may_ask = sys.stdin.isatty() and not out.as_json
                if not may_ask or not click.confirm("Remove it?", err=True):
                    raise click.UsageError("Nothing was removed; --yes does not ask.")
            done = ServiceDone.model_validate(
                begin(hold.client, lambda: hold.client.call(ops.REMOVE_SERVICE, asked, **which), out).result
            )
        out.result(done, [f"removed  {path}" for path in done.removed])
        return None

    removal.__doc__ = "Stop a service of ours and remove all that came with it; fetched models stay."
    remove = command(f"{typed} remove{where} qwen3-8b --dry-run")(removal)
    for option in (
        _replace,
        click.option("--yes", is_flag=True, help="Do not ask."),
        _dry_run,
    ):
        remove = option(remove)
    group.add_command(click.command("remove")(made(remove)))
    return group


def _action(
    action: ServiceAction,
    example: str,
    made: Callable[..., Any],
    wanted: Callable[[str | None], Sequence[ServiceManager]],
) -> click.Command:
    def act(
        out: Output,
        service: str,
        wait: bool = True,
        name: str = THIS_MACHINE,
        manager: str | None = None,
    ) -> Exit | None:
        with find_or_start() as hold:
            found = chosen(hold.client, name, wanted(manager), service, out, ours=True)
            which = {"name": name, "manager": found.manager.value, "service": found.name}
            asked = ActOnService(action=action, wait=wait)
            ended = begin(hold.client, lambda: hold.client.call(ops.ACT_ON_SERVICE, asked, **which), out)
            done = ServiceDone.model_validate(ended.result)
        out.result(done, _done_lines(done))
        return None

    act.__doc__ = _WORDS[action]
    run: Callable[..., Any] = command(example)(act)
    if action in (ServiceAction.START, ServiceAction.RESTART):
        run = click.option("--wait/--no-wait", default=True, help="Wait until it answers (yes).")(run)
    return click.command(action.value)(made(run))


def install_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command with the options of a start those of a service that is installed.

    Its `--replace` takes the place of that of a start: no engine of a host ends for it.
    """
    given: list[click.Parameter] = getattr(function, "__click_params__", [])
    given[:] = [one for one in given if one.name != "replace"]
    for option in (
        accept_option,
        click.option("--force", is_flag=True, help="Despite findings that say that it would not start."),
        _replace,
        _dry_run,
        click.option("--enable/--no-enable", default=True, help="Let it start with the machine (yes)."),
        click.option("--start/--no-start", default=True, help="Start it now, and see that it answers (yes)."),
        click.option("--program", metavar="PATH", help="The engine's program over there (units)."),
        click.option(
            "--rehydrate/--no-rehydrate",
            default=None,
            help="Let the watchdog bring the model again from where it came, if its file is gone there "
            "(yes where the install fetches it).",
        ),
        click.option("--model-path", metavar="PATH", help="The model, a file or folder over there."),
        click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True),
        click.option("--service-name", metavar="NAME", help="The name of the service (the preset's)."),
    ):
        function = option(function)
    return function


def install(
    out: Output, name: str, manager: ServiceManager | None, asked: dict[str, Any]
) -> ServiceDone | Exit:
    """Install a service on a machine from the options of a command; a dry run ends with its exit code."""
    dry_run, accept = asked.pop("dry_run"), asked.pop("accept")
    asked["name"] = asked.pop("service_name")
    with find_or_start() as hold:
        _connected(hold.client, name, out)
        kind = manager or _usable_container(hold.client, name)

        def plan(consent: str | None) -> tuple[InstallService, ServicePlan]:
            request = InstallService(manager=kind, consent=consent, **asked)
            return request, hold.client.call(ops.PLAN_SERVICE, request, name=name)

        request, shown = with_consent(out, accept, typed_again("accept"), plan)
        if dry_run:
            return planned(out, shown)
        for line in _plan_lines(shown):
            out.note(line)
        done = ServiceDone.model_validate(
            begin(hold.client, lambda: hold.client.call(ops.INSTALL_SERVICE, request, name=name), out).result
        )
    out.result(done, _done_lines(done))
    return done


@click.command("install")
@click.argument("machine", metavar="NAME")
@click.argument("preset")
@install_options
@launch_options
@command("sndr host unit install gpu qwen3-8b-k8v4-24 --port 8001")
def install_unit(
    out: Output, /, machine: str, preset: str, options: LaunchOptions, **asked: Any
) -> Exit | None:
    """Have PRESET carried out by systemd on NAME, for the user that ssh logs in as, with its watchdog.

    The plan is shown first; what fails is undone. GPUs are those of that machine. Nothing of it needs root.
    """
    return _ended(install(out, machine, ServiceManager.SYSTEMD, {**asked, **start_of(options, preset)}))


@click.command("install")
@click.argument("machine", metavar="NAME")
@click.argument("preset")
@_in
@install_options
@launch_options
@command("sndr host container install gpu qwen3-8b-k8v4-24 --in podman")
def install_container(
    out: Output, /, machine: str, preset: str, manager: str | None, options: LaunchOptions, **asked: Any
) -> Exit | None:
    """Have PRESET carried out by a container on NAME: Docker, or Podman where there is no Docker.

    The image is pulled first; what fails is undone, and what ran before runs again.
    """
    kind = None if manager is None else ServiceManager(manager)
    return _ended(install(out, machine, kind, {**asked, **start_of(options, preset)}))


def start_of(options: LaunchOptions, preset: str) -> dict[str, Any]:
    """Return what the options of a start say of a service."""
    launch = options.request("").model_copy(update={"preset": preset, "instead_of": None, "gpus": ()})
    return {"launch": launch, "gpus": options.gpu, "replace": options.replace}


def _ended(done: ServiceDone | Exit) -> Exit | None:
    return done if isinstance(done, Exit) else None


def services_of(
    client: ControlClient, name: str, managers: Sequence[ServiceManager], out: Output
) -> ServicePage:
    """Return the services of some managers of a machine, which is connected for it."""
    _connected(client, name, out)
    page = client.call(ops.SERVICES, name=name)
    return page.model_copy(
        update={
            "managers": tuple(one for one in page.managers if one.manager in managers),
            "services": tuple(one for one in page.services if one.manager in managers),
        }
    )


def chosen(
    client: ControlClient,
    name: str,
    managers: Sequence[ServiceManager],
    service: str,
    out: Output,
    *,
    ours: bool,
) -> Service:
    """Return the service that is meant; `sndr-` may be left out.

    Raises HostError: not_found, conflict for several of that name, and for one of others if it must be ours.
    """
    page = services_of(client, name, managers, out)
    called = (service, f"sndr-{service}", service.removesuffix(".service"))
    found = [one for one in page.services if one.name in called]
    where = "here" if name == THIS_MACHINE else f"on {name}"
    group = "unit" if ServiceManager.SYSTEMD in managers else "container"
    see = "sndr services list" if name == THIS_MACHINE else shlex.join(["sndr", "host", group, "list", name])
    if not found:
        near = near_names(service, [one.name for one in page.services if one.ours or not ours])
        off = [f"{one.manager.value}: {one.why}" for one in page.managers if not one.usable]
        raise HostError(
            Reason.NOT_FOUND,
            tr("There is no service {service} {where}.", service=repr(service[:100]), where=where),
            cause=tr("Near it: {near}.", near=", ".join(near)) if near else "; ".join(off),
            fix=Fix(text="See which there are.", command=see),
        )
    mine = [one for one in found if one.ours] or found
    if len(mine) > 1:
        raise HostError(
            Reason.CONFLICT,
            tr(
                "{service} is there more than once: {mine}.",
                service=service,
                mine=", ".join(one.manager.value for one in mine),
            ),
            cause="systemd, Docker and Podman each keep names of their own.",
            fix=Fix(text="Say which one with --in."),
        )
    if ours and not mine[0].ours:
        raise HostError(
            Reason.CONFLICT,
            tr("{mine} {where} is none of ours, and is left alone.", mine=mine[0].name, where=where),
            cause="Only services that this program has installed are changed by it.",
            fix=Fix(text="See which are.", command=see),
        )
    return mine[0]


def planned(out: Output, plan: ServicePlan) -> Exit:
    """Print a plan and say whether it could be carried out."""
    out.result(plan, _plan_lines(plan))
    stopped = any(one.severity is Severity.ERROR for one in plan.findings)
    return Exit.CONFLICT if stopped else Exit.OK


def _connected(client: ControlClient, name: str, out: Output) -> None:
    if name != THIS_MACHINE:
        connect(client, name, out)


def _usable_container(client: ControlClient, name: str) -> ServiceManager:
    """Docker where it can be used, else Podman; the plan says why where neither can."""
    states = {one.manager: one.usable for one in client.call(ops.SERVICES, name=name).managers}
    return next((one for one in CONTAINERS if states.get(one)), ServiceManager.DOCKER)


def _plan_lines(plan: ServicePlan) -> list[str]:
    where = "" if plan.host == THIS_MACHINE else f" on {plan.host}"
    lines = [f"{plan.name} ({plan.manager.value}){where}: {plan.title}".rstrip(": ")]
    if plan.unchanged:
        lines.append("It is there just so; nothing changes.")
    lines += change_lines(plan.changes)
    return [*lines, *(line for one in plan.findings for line in finding_lines(one))]


def _done_lines(done: ServiceDone) -> list[str]:
    where = "" if done.host == THIS_MACHINE else f" on {done.host}"
    service = done.service
    state = _state(service) if service is not None else "removed"
    lines = [f"{done.name}{where} is {state}" + (", as it was." if done.unchanged else ".")]
    if service is not None and service.address and service.state is ServiceState.RUNNING:
        lines.append(f"It answers as {service.model} at {service.address} there.")
    lines += [line for one in done.findings for line in finding_lines(one)]
    if done.route:
        lines.append(f"Let the endpoint here answer with it: {done.route}")
    logs = "sndr services logs" if done.host == THIS_MACHINE else f"sndr host logs {done.host}"
    return [*lines, f"Its lines: {logs} {done.name} --follow"]


def _lines(page: ServicePage) -> list[str]:
    rows = [
        (
            one.name if one.ours else f"({one.name})",
            one.manager.value,
            _state(one),
            {True: "yes", False: "no", None: ""}[one.enabled],
            (one.model or "") if one.ours else one.image or "",
            _note(one),
        )
        for one in page.services
    ]
    lines = table(("service", "by", "state", "enabled", "model", "note"), rows) if rows else []
    if any(not one.ours for one in page.services):
        lines.append("Those in brackets are of others, and are left alone.")
    lines += [
        ended(f"{one.manager.value} cannot be used there: {one.why}")
        for one in page.managers
        if not one.usable
    ]
    if not any(one.ours for one in page.services):
        way = ": " if can_install(page) else ", and nothing there can carry one out; without one: "
        lines.append(f"No service of ours is there{way}{install_command(page)}")
    return lines


def can_install(page: ServicePage) -> bool:
    """Return False where every manager was asked and none can be used."""
    return len(page.managers) < len(EVERY) or any(one.usable for one in page.managers)


def install_command(page: ServicePage) -> str:
    """Return the command that installs a service with what can be used there, or that starts without one."""
    if not can_install(page):
        return "sndr launch PRESET" if page.host == THIS_MACHINE else f"sndr --host {page.host} launch PRESET"
    states = {one.manager: one.usable for one in page.managers}
    # Of one that was not asked nobody knows that it cannot be used.
    best = min((one for one in EVERY if states.get(one) is not False), key=lambda one: one not in states)
    if page.host == THIS_MACHINE:
        return f"sndr launch PRESET --in {best.value}"
    group = "unit" if best is ServiceManager.SYSTEMD else "container"
    return f"sndr host {group} install {page.host} PRESET"


def _state(one: Service) -> str:
    shown = one.state.value
    if one.detail and one.detail not in (shown, "dead"):
        shown += f" ({one.detail})"
    return shown


def _note(one: Service) -> str:
    parts = []
    if one.health:
        parts.append(one.health)
    if one.watchdog:
        parts.append(f"watchdog: {one.watchdog.replace('_', ' ')}")
    if one.restarts:
        parts.append("1 restart" if one.restarts == 1 else f"{one.restarts} restarts")
    if one.changed:
        parts.append(f"changed by hand: {', '.join(path.rpartition('/')[2] for path in one.changed)}")
    return "; ".join(parts) if parts else one.title if not one.ours else ""


unit = _group("unit", "Units of systemd on another machine, for the user there.", UNITS, here=False)
unit.add_command(install_unit)
container = _group("container", "Containers of Docker and Podman on another machine.", CONTAINERS, here=False)
container.add_command(install_container)
services = _group(
    "services",
    "Units and containers on this machine that carry out starts: `sndr launch PRESET --in docker`.",
    EVERY,
    here=True,
)
