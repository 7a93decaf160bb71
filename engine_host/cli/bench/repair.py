"""`sndr bench repair`: save what can be read of a damaged file of runs."""

import click

from engine_host.cli.bench.lab import read
from engine_host.cli.output import Output, command
from engine_host.cli.text.chosen_host import chosen_host
from engine_host.core.paths import Folders
from engine_host.protocol.bench.lab import LabRepair


@click.command("repair")
@command("sndr bench repair")
def lab_repair(out: Output) -> None:
    """Read what can be read of a damaged file of runs into a new one, while nothing is measured.

    The damaged file stays beside it, and may hold more: `sqlite3 FILE .recover` knows further ways.
    """
    if host := chosen_host():
        raise click.UsageError(f"It repairs the file of this machine: log in at {host} and ask there.")
    done = LabRepair.model_validate(read(["repair", str(Folders.resolve().data)])["repair"])
    samples = f", {done.without_samples} of them without samples" if done.without_samples else ""
    out.result(
        done,
        [
            f"{done.runs} runs{samples} and {done.sweeps} sweeps could be read: sndr bench list",
            f"The damaged file is {done.aside}; what else is in it may be found by: sqlite3 FILE .recover",
        ],
    )
