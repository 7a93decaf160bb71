"""`sndr engine pin` and `sndr host pin`: the vLLM that starts use where none is named, and the one before."""

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.start.host import find_or_start
from engine_host.cli.start.remote import remote_client
from engine_host.cli.text.job_progress import begin
from engine_host.cli.text.tables import table
from engine_host.client.sync import ControlClient
from engine_host.protocol.engines import InstallationPage, PinPlan, PinVllm
from engine_host.protocol.operations import table as ops

_name = click.argument("engine", required=False, type=click.Choice(["vllm"]))
_version = click.argument("version", required=False)
_back = click.option("--back", is_flag=True, help="Use the pin again that was before the last change.")
_dry_run = click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing.")


@click.command("pin")
@_name
@_version
@_back
@_dry_run
@command("sndr engine pin", "sndr engine pin vllm 0.32.0", "sndr engine pin --back")
def engine_pin(
    out: Output, engine: str | None, version: str | None, back: bool, dry_run: bool
) -> Exit | None:
    """Say which vLLM starts use where none is named, or have them use VERSION (`0.32.0`, `0.32.0-cpu`).

    It is installed first where it is not there; engines that run go on with theirs. `automatic` is no pin:
    the best that is installed.
    """
    _check(engine, version, back)
    with find_or_start() as hold:
        _carry_out(out, hold.client, version, back, dry_run, "sndr engine pin")
    return None


@click.command("pin")
@click.argument("name")
@_name
@_version
@_back
@_dry_run
@command("sndr host pin gpu vllm 0.32.0", "sndr host pin gpu --back")
def host_pin(
    out: Output, name: str, engine: str | None, version: str | None, back: bool, dry_run: bool
) -> Exit | None:
    """Say which vLLM starts on NAME use, or have them use VERSION: `sndr --host NAME engine pin`."""
    _check(engine, version, back)
    with remote_client(name) as client:
        _carry_out(out, client, version, back, dry_run, f"sndr host pin {name}")
    return None


def _check(engine: str | None, version: str | None, back: bool) -> None:
    if back and version is not None:
        raise click.UsageError("--back takes no version: it uses the pin that was before.")
    if engine is not None and version is None and not back:
        raise click.UsageError("Name a version, as in: vllm 0.32.0; or `vllm automatic`.")


def _carry_out(
    out: Output, client: ControlClient, version: str | None, back: bool, dry_run: bool, again: str
) -> None:
    asked = PinVllm(version=version, back=back)
    plan = client.call(ops.PLAN_PIN, asked)
    if version is None and not back:
        _show(out, client.call(ops.INSTALLATIONS), plan, again)
        return
    report = {**plan.model_dump(mode="json", exclude={"now"}), "before": plan.now}
    if not plan.changes:
        out.result({**report, "before": plan.before}, f"{plan.pin} is the pin already.")
        return
    if dry_run:
        out.result(report, [*plan.changes, "Engines that run go on with theirs."])
        return
    for line in plan.changes:
        out.note(line)
    begin(client, lambda: client.call(ops.PIN, asked), out)
    out.result(report, [f"Starts use vLLM {plan.pin} from now on.", f"Back with one command: {again} --back"])


def _show(out: Output, page: InstallationPage, plan: PinPlan, again: str) -> None:
    automatic = not any(one.id == plan.now for one in page.installations)
    rows = [
        ("→" if one.id == plan.now else "", one.id, "installed" if one.present else "not installed")
        for one in page.installations
    ]
    lines = ["Starts use the best vLLM that is installed." if automatic else f"Starts use vLLM {plan.now}."]
    lines += table(("pin", "vLLM", "state"), rows)
    lines += [f"Before: {plan.before} ({again} --back)"] if plan.before else []
    known = [one.model_dump(mode="json") for one in page.installations]
    out.result({"pin": plan.now, "before": plan.before, "installations": known}, lines)
