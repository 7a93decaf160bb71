"""`sndr host install|update|uninstall`: our host on another machine."""

import sys
from collections.abc import Iterable

import click

from engine_host.cli.output import Exit, Output, command, echo, size
from engine_host.cli.remote.connecting import connect
from engine_host.cli.start.host import find_or_start
from engine_host.cli.text.job_progress import begin
from engine_host.cli.text.plan import finding_lines
from engine_host.protocol.base import Severity
from engine_host.protocol.operations import remote_install as ops
from engine_host.protocol.remote.install import (
    InstallOnHost,
    PlannedChange,
    RemoteChange,
    RemoteInstalled,
    RemoteInstallPlan,
)

_SIGNS = {
    RemoteChange.ADD: "+",
    RemoteChange.CHANGE: "~",
    RemoteChange.REMOVE: "-",
    RemoteChange.KEEP: " ",
    RemoteChange.RUN: "$",
}
_offline = click.option(
    "--offline", is_flag=True, help="Send the packages from here, for a machine without internet."
)
_demo = click.option("--demo", is_flag=True, help="Let the bundled model answer a question there in the end.")
_dry_run = click.option("--dry-run", is_flag=True, help="Print what would change there, and change nothing.")


@click.command("install")
@click.argument("name")
@_offline
@_demo
@_dry_run
@command("sndr host install gpu --dry-run", "sndr host install gpu")
def install(out: Output, name: str, offline: bool, demo: bool, dry_run: bool) -> Exit | None:
    """Install this program's host on NAME, for the user that ssh logs in as; nothing of it needs root.

    It runs as a service of that user where services may stay after a logout, else as a plain process.
    """
    asked = InstallOnHost(offline=offline, demo=demo)
    with find_or_start() as hold:
        connect(hold.client, name, out)
        if dry_run:
            return _planned(out, hold.client.call(ops.PLAN_HOST_INSTALL, asked, name=name))
        ended = begin(hold.client, lambda: hold.client.call(ops.INSTALL_HOST, asked, name=name), out)
        done = RemoteInstalled.model_validate(ended.result)
    out.result(done, _lines(done))
    return None


@click.command("update")
@click.argument("name")
@_offline
@_demo
@_dry_run
@click.option("--back", is_flag=True, help="Let the version run again that ran before the last update.")
@command("sndr host update gpu", "sndr host update gpu --back")
def update(out: Output, name: str, offline: bool, demo: bool, dry_run: bool, back: bool) -> Exit | None:
    """Put this version in the place of the one on NAME; the old one stays until the new one works."""
    if back and (offline or demo):
        raise click.UsageError("--back takes no option but --dry-run: nothing is sent for it.")
    asked = InstallOnHost(offline=offline, demo=demo)
    with find_or_start() as hold:
        connect(hold.client, name, out)
        if dry_run and back:
            return _planned(out, hold.client.call(ops.PLAN_HOST_BACK, name=name))
        if dry_run:
            return _planned(out, hold.client.call(ops.PLAN_HOST_INSTALL, asked, name=name))
        if back:
            ended = begin(hold.client, lambda: hold.client.call(ops.HOST_BACK, name=name), out)
        else:
            ended = begin(hold.client, lambda: hold.client.call(ops.UPDATE_HOST, asked, name=name), out)
        done = RemoteInstalled.model_validate(ended.result)
    out.result(done, _lines(done))
    return None


@click.command("uninstall")
@click.argument("name")
@_dry_run
@click.option("--yes", is_flag=True, help="Do not ask.")
@command("sndr host uninstall gpu --dry-run")
def uninstall(out: Output, name: str, dry_run: bool, yes: bool) -> Exit | None:
    """End our host on NAME and remove what came with it, its settings and data too; what was there stays."""
    with find_or_start() as hold:
        connect(hold.client, name, out)
        if dry_run or not yes:
            plan = hold.client.call(ops.PLAN_HOST_UNINSTALL, name=name)
            if dry_run:
                return _planned(out, plan)
            echo("\n".join(plan_lines(plan)), err=True)
            asked = sys.stdin.isatty() and not out.as_json
            if not asked or not click.confirm("Remove it?", err=True):
                raise click.UsageError("Nothing was removed; --yes does not ask.")
        done = RemoteInstalled.model_validate(
            begin(hold.client, lambda: hold.client.call(ops.UNINSTALL_HOST, name=name), out).result
        )
    lines = [f"removed  {path}" for path in done.removed] + [f"kept     {path}" for path in done.kept]
    lines += [line for one in done.findings for line in finding_lines(one)]
    out.result(done, [*lines, f"{name} stays in the list: sndr host remove {name}"])
    return None


def plan_lines(plan: RemoteInstallPlan) -> list[str]:
    """A plan as a diff of that machine: `+` new, `~` changed, `-` removed, `$` run there."""
    return [*change_lines(plan.changes), *(line for one in plan.findings for line in finding_lines(one))]


def change_lines(changes: Iterable[PlannedChange]) -> list[str]:
    """Changes of a machine, one below the other, each with its sign."""
    lines = []
    for one in changes:
        notes = [size(one.size)] if one.size is not None else []
        notes += [one.note] if one.note else []
        lines.append(f"{_SIGNS[one.kind]} {one.what}" + (f"  ({', '.join(notes)})" if notes else ""))
        signed = one.kind is RemoteChange.CHANGE
        lines += [f"  {line}" if signed else f"  {_SIGNS[one.kind]} {line}" for line in one.text.splitlines()]
    return lines


def _planned(out: Output, plan: RemoteInstallPlan) -> Exit:
    out.result(plan, plan_lines(plan))
    stopped = any(one.severity is Severity.ERROR for one in plan.findings)
    return Exit.CONFLICT if stopped else Exit.OK


def _lines(done: RemoteInstalled) -> list[str]:
    if done.unchanged:
        lines = [f"{done.host} runs {done.release} already."]
    else:
        lines = [f"{done.host} runs {done.release}, as {_service(done)}."]
    if done.repaired is not None:
        lines.append(f"It was damaged ({done.repaired}) and was made anew.")
    if done.demo_answer is not None:
        lines.append(f"The bundled model said there: {done.demo_answer}")
    if done.back_to not in (None, done.release) and not done.unchanged:
        lines.append(f"Back to {done.back_to} with one command: sndr host update {done.host} --back")
    lines += [line for one in done.findings for line in finding_lines(one)]
    return [*lines, f"Any command there: sndr --host {done.host} status"]


def _service(done: RemoteInstalled) -> str:
    return "a service of its user" if done.service == "systemd" else "a plain process"
