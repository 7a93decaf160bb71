"""`sndr autopsy`: the records of engines that died, listed, opened and removed."""

import click

from engine_host.cli.autopsy.lines import list_lines, record_lines
from engine_host.cli.autopsy.records import records_of
from engine_host.cli.output import Exit, Output, command
from engine_host.core.did_you_mean import meant_or
from engine_host.core.errors import HostError
from engine_host.protocol.bench.autopsy import AutopsyPage
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

_NEWEST = "latest"


@click.command("autopsy")
@click.argument("record", metavar="[ID]", required=False)
@click.option("--remove", is_flag=True, help="Remove this record, also one that cannot be read.")
@command("sndr autopsy", "sndr autopsy demo  # the newest end of this engine")
def autopsy(out: Output, record: str | None, remove: bool) -> Exit | None:
    """List engines that died, or say of one what ended it and held memory.

    ID is the id of a record, the beginning of one, or an engine by its id or name: its newest record then;
    `latest` is the newest of all.
    The host saves a record whenever an engine dies, and keeps the newest 20. Without a host they are read
    from the data folder.
    """
    if remove and record is None:
        raise click.UsageError("--remove needs the ID of a record: `sndr autopsy` lists them.")
    with records_of(out) as records:
        page = records.page()
        if record is None:
            out.result(page, list_lines(page))
            return None
        known = _whole_id(page, record, of_engines=not remove)
        if remove:
            out.result(records.remove(known), f"Removed {known}.")
            return None
        opened = records.open(known)
    out.result(opened, record_lines(opened))
    return None


def _whole_id(page: AutopsyPage, said: str, *, of_engines: bool) -> str:
    """The id that is meant. Raises HostError(not_found), HostError(conflict) for the beginning of several."""
    ids = [*(one.id for one in page.autopsies), *(one.id for one in page.unreadable)]
    if said in ids:
        return said
    if said == _NEWEST and page.autopsies:
        return max(page.autopsies, key=lambda one: one.at).id
    begun = [one for one in ids if said and one.startswith(said)]
    if len(begun) == 1:
        return begun[0]
    if begun:
        raise HostError(
            Reason.CONFLICT,
            tr("{said} is the beginning of {count} records.", said=said, count=len(begun)),
            cause=tr(
                "They are {begun}{what}.", begun=", ".join(begun[:5]), what=" …" if len(begun) > 5 else ""
            ),
            fix=Fix(text="Give more of it.", command=f"sndr autopsy {begun[0]}"),
        )
    if of_engines:
        for entry in page.autopsies:
            if said in (entry.engine, entry.name):
                return entry.id
    if not ids:
        raise HostError(
            Reason.NOT_FOUND,
            "No engine died that is on record.",
            cause="The newest 20 records are kept; an engine that was stopped, and did not die, has none.",
            fix=Fix(text="See what runs.", command="sndr status"),
        )
    raise HostError(
        Reason.NOT_FOUND,
        tr("There is no autopsy {said}.", said=said),
        cause="The newest 20 records are kept; an engine that was stopped, and did not die, has none.",
        fix=meant_or(
            Fix(text="See which there are.", command="sndr autopsy"),
            said,
            [entry.name for entry in page.autopsies],
        ),
    )
