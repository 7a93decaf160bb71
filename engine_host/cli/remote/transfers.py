"""`sndr host send|fetch`: model files to and from other machines."""

from pathlib import Path

import click

from engine_host.cli.output import Exit, Output, command, size
from engine_host.cli.remote.connecting import connect
from engine_host.cli.start.host import find_or_start
from engine_host.cli.text.job_progress import begin
from engine_host.cli.text.plan import finding_lines
from engine_host.core.sizes import size_text
from engine_host.protocol.base import Severity
from engine_host.protocol.operations import remote_transfers as ops
from engine_host.protocol.remote.transfers import (
    FetchModel,
    FileStanding,
    ModelTransferPlan,
    ModelTransferred,
    SendModel,
    TransferWay,
)

_SIGNS = {FileStanding.NEW: "+", FileStanding.PART: "+", FileStanding.OTHER: "~", FileStanding.SAME: " "}
_dry_run = click.option("--dry-run", is_flag=True, help="Print what would be carried, and carry nothing.")
_replace = click.option("--replace", is_flag=True, help="Replace other files of the same names.")


@click.command("send")
@click.argument("name")
@click.argument("model")
@click.option("--to", help="The folder there, instead of the host's model root.")
@_replace
@_dry_run
@command("sndr host send gpu qwen3-8b --dry-run", "sndr host send gpu qwen3-8b")
def send(out: Output, name: str, model: str, to: str | None, replace: bool, dry_run: bool) -> Exit | None:
    """Send MODEL (an id of `sndr models`, or a path) to NAME, with its parts; what lies there is not sent.

    Each file is in its place once its SHA-256 is right. After a lost connection or Ctrl+C the same command
    goes on where it stopped.
    """
    path = str(Path(model).absolute()) if _is_path(model) else model
    asked = SendModel(model=path, to=to, replace=replace)
    with find_or_start() as hold:
        connect(hold.client, name, out)
        if dry_run:
            return _planned(out, hold.client.call(ops.PLAN_SEND, asked, name=name))
        done = ModelTransferred.model_validate(
            begin(hold.client, lambda: hold.client.call(ops.SEND_MODEL, asked, name=name), out).result
        )
    out.result(done, _lines(done))
    return None


@click.command("fetch")
@click.argument("name")
@click.argument("model")
@click.option(
    "--to", type=click.Path(path_type=Path), help="The folder here, instead of the first model folder."
)
@_replace
@_dry_run
@command("sndr host fetch gpu qwen3-8b", "sndr host fetch gpu /srv/models/tuned --to models")
def fetch(out: Output, name: str, model: str, to: Path | None, replace: bool, dry_run: bool) -> Exit | None:
    """Fetch MODEL (an id of `sndr --host NAME models`, or a path there) from NAME, with its parts.

    Each file is in its place once its SHA-256 is right. After a lost connection or Ctrl+C the same command
    goes on where it stopped.
    """
    folder = str(to.expanduser().absolute()) if to is not None else None
    asked = FetchModel(model=model, to=folder, replace=replace)
    with find_or_start() as hold:
        connect(hold.client, name, out)
        if dry_run:
            return _planned(out, hold.client.call(ops.PLAN_FETCH, asked, name=name))
        done = ModelTransferred.model_validate(
            begin(hold.client, lambda: hold.client.call(ops.FETCH_MODEL, asked, name=name), out).result
        )
    out.result(done, _lines(done))
    return None


def transfer_lines(plan: ModelTransferPlan) -> list[str]:
    """A plan as a diff of the folder that gets the files: `+` new, `~` another one there, else there."""
    lines = [f"{plan.model} ({size(plan.size)}) to {plan.folder}"]
    for one in plan.files:
        note = {
            FileStanding.NEW: "",
            FileStanding.PART: f", {size(one.there)} of it are there",
            FileStanding.OTHER: ", another file of this name is there",
            FileStanding.SAME: ", is there already",
        }[one.standing]
        lines.append(f"{_SIGNS[one.standing]} {one.name}  ({size(one.size)}{note})")
    free = f"; {size(plan.free)} are free" if plan.free is not None else ""
    lines.append(f"{size(plan.left)} to carry{free}." if plan.left else "Nothing to transfer.")
    return [*lines, *(line for one in plan.findings for line in finding_lines(one))]


def _planned(out: Output, plan: ModelTransferPlan) -> Exit:
    out.result(plan, transfer_lines(plan))
    stopped = any(one.severity is Severity.ERROR for one in plan.findings)
    return Exit.CONFLICT if stopped else Exit.OK


def _lines(done: ModelTransferred) -> list[str]:
    where = done.host if done.way is TransferWay.SEND else "this machine"
    if done.carried:
        rate = f", {size_text(done.carried / done.seconds)}/s" if done.seconds >= 1 else ""
        lines = [f"{done.model} lies on {where}: {done.path} ({size(done.carried)} carried{rate})."]
    else:
        lines = [f"{done.model} lay on {where} already: {done.path}."]
    lines += [line for one in done.findings for line in finding_lines(one)]
    if done.listed_as is not None:
        there = f"--host {done.host} " if done.way is TransferWay.SEND else ""
        lines.append(f"Run it: sndr {there}run {done.listed_as}")
    return lines


def _is_path(model: str) -> bool:
    """Return True for a path of this machine: one that is written as such, or a file that is there."""
    like_one = "/" in model or model.lower().endswith(".gguf")
    return model.startswith((".", "/")) or (like_one and Path(model).exists())
