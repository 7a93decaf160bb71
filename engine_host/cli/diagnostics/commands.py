"""`sndr diagnostics`: one zip for a bug report, shown before it leaves."""

import os
from pathlib import Path

import click

from engine_host.cli.output import Exit, Output, command, echo, size
from engine_host.cli.start.remote import remote_client
from engine_host.cli.text.chosen_host import chosen_host, typed
from engine_host.cli.text.tables import table
from engine_host.client.address import RemoteAddress
from engine_host.client.diagnostics.bundle import Bundle, collect, place_of, refuse_place, save


@click.command()
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="Write it to this file or into this folder; without it into the current one, named by the time.",
)
@click.option("--preview", is_flag=True, help="Show every file with its text, and write nothing.")
@command("sndr diagnostics --preview", "sndr diagnostics --output report.zip")
def diagnostics(out: Output, output: str | None, preview: bool) -> Exit | None:
    """Write one zip for a bug report: versions, settings, machine, starts, logs, events, measurements.

    Keys, tokens, names of people and machines, addresses and the home folder are taken out; prompts are in
    none of it. Nothing is sent anywhere. Works without a host, and says then what is missing. With
    `sndr --host NAME` it is of that machine, collected over the connection and masked here.

    The zip is readable by you alone (0600), and no file that is there is ever written over. With --json too
    it is written: its path and what is in it are printed as JSON. Only --preview writes nothing.
    """
    if preview and output is not None:
        raise click.UsageError("--preview writes nothing: give either --preview or --output.")
    if output is not None and not os.path.isdir(output):
        # What is collected for nothing takes seconds.
        refuse_place(Path(os.path.abspath(output)))
    out.note("Collecting…")
    bundle = collect(there=_there())
    missing = [{"name": one.name, "why": one.why} for one in bundle.missing]
    if preview:
        if out.as_json:
            listed = [{"name": one.name, "size": len(one.content), "text": one.text} for one in bundle.files]
            out.record({"files": listed, "missing": missing})
            return None
        echo("\n".join(_listing(bundle)))
        for one in bundle.files:
            echo(f"\n===== {one.name} ({size(len(one.content))}) =====\n{one.text.rstrip()}")
        return None
    target = place_of(bundle, output)
    written = save(bundle, target)
    if out.as_json:
        sizes = [{"name": one.name, "size": len(one.content)} for one in bundle.files]
        out.record({"file": str(target), "size": written, "files": sizes, "missing": missing})
        return None
    echo("\n".join(_listing(bundle)))
    echo(f"\nWritten to {target} ({size(written)}), readable by you alone. Nothing was sent anywhere.")
    shown = typed("sndr diagnostics --preview")
    echo(f"Look through it before you share it: `{shown}` shows such files with their texts.")
    return None


def _there() -> RemoteAddress | None:
    """Return the address of the chosen host; None for this machine's. Raises HostError."""
    name = chosen_host()
    if not name:
        return None
    with remote_client(name) as client:
        assert isinstance(client.address, RemoteAddress)
        return client.address


def _listing(bundle: Bundle) -> list[str]:
    lines = table(("file", "size"), [(one.name, size(len(one.content))) for one in bundle.files])
    return [*lines, *(f"missing: {one.name}: {one.why}" for one in bundle.missing)]
