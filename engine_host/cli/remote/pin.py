"""`sndr engine pin` and `sndr host pin`: the vLLM that starts use where none is named, and the one before."""

from typing import Any

import click

from engine_host.cli.output import Exit, Output, command, size, table
from engine_host.cli.start.host import find_or_start
from engine_host.cli.start.remote import remote_client
from engine_host.cli.text.job_progress import follow
from engine_host.client.sync import ControlClient
from engine_host.core.errors import HostError
from engine_host.protocol.engines import Installation, InstallationPage
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.operations import table as ops
from engine_host.protocol.settings import SettingsChange

_PIN, _BEFORE = "engine.vllm", "engine.vllm_before"
_AUTOMATIC = "automatic"
"""No pin: the best environment that is installed."""

_name = click.argument("engine", required=False, type=click.Choice(["vllm"]))
_version = click.argument("version", required=False)
_back = click.option("--back", is_flag=True, help="Use the pin again that was before the last change.")
_dry_run = click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing.")


@click.command("pin")
@_name
@_version
@_back
@_dry_run
@command
def engine_pin(
    out: Output, engine: str | None, version: str | None, back: bool, dry_run: bool
) -> Exit | None:
    """Say which vLLM starts use where none is named, or have them use VERSION (`0.32.0`, `0.32.0-cpu`).

    It is installed first where it is not there; engines that run go on with theirs. `automatic` is no pin:
    the best that is installed.
    """
    _check(engine, version, back)
    with find_or_start() as hold:
        _carry_out(out, hold.client, version, back, dry_run, "sndr engine pin vllm")
    return None


@click.command("pin")
@click.argument("name")
@_name
@_version
@_back
@_dry_run
@command
def host_pin(
    out: Output, name: str, engine: str | None, version: str | None, back: bool, dry_run: bool
) -> Exit | None:
    """Say which vLLM starts on NAME use, or have them use VERSION: `sndr --host NAME engine pin`."""
    _check(engine, version, back)
    with remote_client(name) as client:
        _carry_out(out, client, version, back, dry_run, f"sndr host pin {name} vllm")
    return None


def _check(engine: str | None, version: str | None, back: bool) -> None:
    if back and version is not None:
        raise click.UsageError("--back takes no version: it uses the pin that was before.")
    if engine is not None and version is None and not back:
        raise click.UsageError("Name a version, as in: vllm 0.32.0; or `vllm automatic`.")


def _carry_out(
    out: Output, client: ControlClient, version: str | None, back: bool, dry_run: bool, again: str
) -> None:
    page = client.call(ops.INSTALLATIONS)
    values = {one.name: one.value for one in client.call(ops.SETTINGS).settings}
    now, before = values.get(_PIN) or _AUTOMATIC, values.get(_BEFORE)
    if version is None and not back:
        _show(out, page, now, before, again)
        return
    if back and before is None:
        raise HostError(
            Reason.CONFLICT,
            "The pin of vLLM was never changed, so that there is none before it.",
            fix=Fix(text="Name the version that starts are to use.", command=f"{again} VERSION"),
        )
    wanted = str(before) if version is None else version
    chosen = None if wanted == _AUTOMATIC else _chosen(page, wanted)
    new = wanted if chosen is None else chosen.id
    installs = chosen is not None and not chosen.present
    changes = []
    if installs and chosen is not None:
        amount = f"{size(chosen.needs_free)} free" + (
            f", {size(chosen.download)} to download" if chosen.download else ""
        )
        changes.append(f"+ vLLM {new} is installed ({amount})")
    if new != now:
        changes.append(f"~ starts without --installation use {new}, and not {now}")
    report: dict[str, Any] = {"pin": new, "before": now, "installs": installs, "changes": changes}
    if not changes:
        out.result({**report, "before": before}, f"{new} is the pin already.")
        return
    if dry_run:
        out.result(report, [*changes, "Engines that run go on with theirs."])
        return
    for line in changes:
        out.note(line)
    if installs and chosen is not None:
        # Before anything changes: where it fails the pin is the one that works.
        follow(client, client.call(ops.INSTALL, id=chosen.id), out)
    if new != now:
        given = {_PIN: None if new == _AUTOMATIC else new, _BEFORE: now}
        client.call(ops.CHANGE_SETTINGS, SettingsChange(values=given))
    _verify(client, new)
    lines = [f"Starts use vLLM {new} from now on."]
    out.result(report, [*lines, f"Back with one command: {again.removesuffix(' vllm')} --back"])


def _verify(client: ControlClient, wanted: str) -> None:
    """Raise HostError(verification_failed) unless the host says what was asked of it."""
    found = {one.name: one.value for one in client.call(ops.SETTINGS).settings}.get(_PIN) or _AUTOMATIC
    there = wanted == _AUTOMATIC or any(
        one.id == wanted and one.present for one in client.call(ops.INSTALLATIONS).installations
    )
    if found != wanted or not there:
        raise HostError(
            Reason.VERIFICATION_FAILED,
            f"The pin is {found}, and {wanted} was asked for.",
            cause="It was changed meanwhile, or the environment was removed.",
            fix=Fix(text="See which there are.", command="sndr engine list"),
            evidence={"pin": found, "installed": there},
        )


def _chosen(page: InstallationPage, wanted: str) -> Installation:
    build = next((one.build for one in page.installations if one.recommended), "cuda")
    for one in sorted(page.installations, key=lambda found: found.build != build):
        if wanted in (one.id, one.version):
            return one
    raise HostError(
        Reason.NOT_FOUND,
        f"There is no vLLM {wanted[:100]!r} that could be installed.",
        cause=f"There are {', '.join(one.id for one in page.installations)}.",
        fix=Fix(text="See which there are.", command="sndr engine list"),
        evidence={"wanted": wanted[:200]},
    )


def _show(out: Output, page: InstallationPage, now: str, before: object, again: str) -> None:
    rows = [
        ("→" if one.id == now else "", one.id, "installed" if one.present else "not installed")
        for one in page.installations
    ]
    lines = [
        f"Starts use vLLM {now}." if now != _AUTOMATIC else "Starts use the best vLLM that is installed."
    ]
    lines += table(("pin", "vLLM", "state"), rows)
    lines += [f"Before: {before} ({again.removesuffix(' vllm')} --back)"] if before else []
    known = [one.model_dump(mode="json") for one in page.installations]
    out.result({"pin": now, "before": before, "installations": known}, lines)
