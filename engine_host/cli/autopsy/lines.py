"""The records of engines that died, as lines for a terminal."""

from engine_host.client import autopsy_words
from engine_host.core.sizes import duration
from engine_host.protocol.bench.autopsy import AutopsyEntry, AutopsyPage, Ending, OpenedAutopsy


def list_lines(page: AutopsyPage) -> list[str]:
    """Return the list, the newest first."""
    died = [_entry_line(one) for one in page.autopsies if one.ending is not Ending.REFUSED]
    refused = [_entry_line(one) for one in page.autopsies if one.ending is Ending.REFUSED]
    lines = died or ["No engine died. When one does, what was measured before its end is kept here."]
    if refused:
        # Nothing ran that could have died.
        lines += ["", "Starts that were refused:", *refused]
    lines += [f"{one.id}  cannot be read: {one.why}" for one in page.unreadable]
    if not (page.autopsies or page.unreadable):
        return lines
    return [*lines, "", f"$ sndr autopsy {(page.autopsies or page.unreadable)[0].id}"]


def _entry_line(one: AutopsyEntry) -> str:
    return f"{one.id}  {autopsy_words.moment(one.at)}  {one.name} ({one.engine}): {one.sentence}"


def record_lines(opened: OpenedAutopsy) -> list[str]:
    """Return one record, with the command that tells all of it."""
    record = opened.record
    return [
        *autopsy_words.record_lines(opened),
        f"$ sndr autopsy {record.id} --json  # every value of the last {duration(record.seconds)}",
    ]
