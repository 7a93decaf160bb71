"""`sndr diagnostics`: one zip for a bug report, shown before it leaves."""

import click

from engine_host.cli.output import Exit, Output, command, echo, size, table
from engine_host.client.diagnostics.bundle import Bundle, collect, place_of, save


@click.command()
@click.option("--to", metavar="FILE.zip", help="Write it there (a file or a folder) instead of here.")
@click.option("--preview", is_flag=True, help="Show every file with its text, and write nothing.")
@command
def diagnostics(out: Output, to: str | None, preview: bool) -> Exit | None:
    """Write one zip for a bug report: versions, settings, machine, starts, logs, events, measurements.

    Keys, tokens, names of people and machines, addresses and the home folder are taken out; prompts are in
    none of it. Nothing is sent anywhere. Works without a host, and says then what is missing.
    """
    if preview and to is not None:
        raise click.UsageError("--preview writes nothing: give either --preview or --to.")
    out.note("Collecting…")
    bundle = collect()
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
    target = place_of(bundle, to)
    written = save(bundle, target)
    if out.as_json:
        sizes = [{"name": one.name, "size": len(one.content)} for one in bundle.files]
        out.record({"file": str(target), "size": written, "files": sizes, "missing": missing})
        return None
    echo("\n".join(_listing(bundle)))
    echo(f"\nWritten to {target} ({size(written)}), readable by you alone. Nothing was sent anywhere.")
    echo(
        "Look through it before you share it: `sndr diagnostics --preview` shows such files with their texts."
    )
    return None


def _listing(bundle: Bundle) -> list[str]:
    lines = table(("file", "size"), [(one.name, size(len(one.content))) for one in bundle.files])
    return [*lines, *(f"missing: {one.name}: {one.why}" for one in bundle.missing)]
