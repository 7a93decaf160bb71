"""The records of a folder as they are listed and opened, with a running host or without one."""

from engine_host.core.diagnosis.reading import end_of, read
from engine_host.core.diagnosis.shelf import AutopsyShelf, most_looked_at
from engine_host.core.errors import HostError
from engine_host.protocol.bench.autopsy import AutopsyEntry, AutopsyPage, OpenedAutopsy, UnreadableAutopsy


def opened(shelf: AutopsyShelf, autopsy: str) -> OpenedAutopsy:
    """Return one record with its reading. Raises HostError(not_found), HostError(unsupported)."""
    record = shelf.open(autopsy)
    return OpenedAutopsy(record=record, reading=read(record))


def page_of(shelf: AutopsyShelf, seq: int = 0) -> AutopsyPage:
    """Return every record, the newest first; a file that cannot be read is listed beside them."""
    found: list[AutopsyEntry] = []
    unreadable: list[UnreadableAutopsy] = []
    for autopsy in most_looked_at(shelf.ids()):
        size = shelf.size(autopsy)
        try:
            record = shelf.open(autopsy)
        except HostError as error:
            unreadable.append(UnreadableAutopsy(id=autopsy, why=error.problem.message, bytes=size))
            continue
        ending, sentence = end_of(record)
        found.append(
            AutopsyEntry(
                # The name of the file, whatever the record says of itself.
                id=autopsy,
                at=record.at,
                engine=record.engine.id,
                name=record.engine.name,
                model=record.engine.plan.model,
                ending=ending,
                reason=record.engine.problem.reason if record.engine.problem is not None else None,
                sentence=sentence,
                bytes=size or 0,
            )
        )
    return AutopsyPage(
        seq=seq, folder=str(shelf.folder), autopsies=tuple(found), unreadable=tuple(unreadable)
    )
