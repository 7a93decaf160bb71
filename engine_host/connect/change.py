"""A client's files changed and changed back: shown first, kept beside, written at once, undone exactly."""

import difflib
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine_host.connect import own_file
from engine_host.connect.clients.definition import Client, ConfigFile
from engine_host.connect.facts import Facts
from engine_host.connect.formats.text import changed
from engine_host.connect.formats.tree import FormatError
from engine_host.connect.found import unreadable
from engine_host.connect.machine import Machine
from engine_host.connect.own_file import OwnFile
from engine_host.connect.records import Records, base_of, hash_of, written_files
from engine_host.connect.settings import check_possible
from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.protocol.endpoint.connect import ClientChange, FileDifference, WrittenFile, WrittenFiles
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

_BACKUP, _UNDONE = ".sndr-backup", ".sndr-undone"
_LONGEST_DIFFERENCE = 200_000


@dataclass(frozen=True)
class FileChange:
    """One file as it is, and as it would be; only a file that changes has one."""

    file: OwnFile
    after: bytes

    @property
    def path(self) -> Path:
        """The file's place."""
        return self.file.path


@dataclass(frozen=True)
class Change:
    """All that would be changed for a client."""

    client: Client
    files: tuple[FileChange, ...]

    def shown(self, done: WrittenFiles | None = None) -> ClientChange:
        """The change as differences, with the names of the copies once it is done."""
        copies = {one.path: one.backup for one in done.files} if done else {}
        return ClientChange(
            client=self.client.name,
            title=self.client.title,
            done=done is not None,
            files=tuple(
                FileDifference(
                    path=str(one.path),
                    is_new=one.file.content is None,
                    difference=difference(one.path, one.file.content or b"", one.after),
                    backup=copies.get(str(one.path)),
                )
                for one in self.files
            ),
        )


def propose(client: Client, machine: Machine, facts: Facts, records: Records) -> Change:
    """Return what writing a client's settings would change; nothing is changed.

    A file that is as this program left it is made anew from what was there before, so that it keeps nothing
    that is not wanted any more.

    Raises HostError(unsupported) for a client without files of a documented form, HostError(not_writable)
    and HostError(setting_invalid) for a file that is better left alone, HostError(conflict) for a damaged
    record of what was written.
    """
    check_possible(client)
    if not client.files:
        raise HostError(
            Reason.UNSUPPORTED,
            tr("{title} has no file that this program could write.", title=client.title),
            cause=tr("Its settings are typed into a form of its own, or stand in your own program."),
            fix=Fix(text=tr("Copy them from what is printed."), command=f"sndr connect {client.name}"),
        )
    written = written_files(records.read(client.name))
    proposed = [_proposed(config, machine, facts, written) for config in client.files]
    return Change(client, tuple(one for one in proposed if one is not None))


def write(change: Change, records: Records) -> ClientChange:
    """Carry a change out, and return it with the names of the copies.

    Raises HostError(conflict) when a file is not any more what the change was made from, and what saving
    raises. The files that were written before that are put back.
    """
    if not change.files:
        return change.shown(WrittenFiles(client=change.client.name, files=()))
    for one in change.files:
        if own_file.read(one.path).content != one.file.content:
            raise _changed_meanwhile(one.path, change.client)
    before = records.read(change.client.name)
    known = written_files(before)
    entries = {one.path: _entry(one, known.get(str(one.path))) for one in change.files}
    kept = [one for path, one in known.items() if Path(path) not in entries]
    record = WrittenFiles(client=change.client.name, files=(*kept, *entries.values()))
    made = [
        Path(entry.backup) for entry in entries.values() if entry.backup is not None and _is_new(entry, known)
    ]
    done: list[FileChange] = []
    try:
        for one in change.files:
            entry = entries[one.path]
            if entry.backup and Path(entry.backup) in made and one.file.content is not None:
                atomic_file.write(Path(entry.backup), one.file.content, one.file.mode)
        # First, so that what is written can be undone whatever happens.
        records.save(record)
        for one in change.files:
            atomic_file.write(one.path, one.after, one.file.mode)
            done.append(one)
    except HostError:
        for one in done:
            _put_back(one)
        for copy in made:
            copy.unlink(missing_ok=True)
        if before is None:
            records.remove(change.client.name)
        else:
            records.save(before)
        raise
    return change.shown(record)


def undo(client: Client, records: Records, *, anyway: bool = False) -> ClientChange:
    """Put back what was there before this program wrote, byte for byte, and return what that changed.

    With `anyway` also where a file was changed since; what it held is then kept beside it.

    Raises HostError(not_found) where nothing was written, HostError(conflict) when a file was changed since,
    with what would be lost.
    """
    record = records.read(client.name)
    if record is None:
        raise HostError(
            Reason.NOT_FOUND,
            tr("Nothing was written for {title}, so there is nothing to undo.", title=client.title),
            fix=Fix(text=tr("See what is set up."), command="sndr connect"),
        )
    found = [
        (entry, own_file.read(Path(entry.path)), _content_before(entry, client)) for entry in record.files
    ]
    edited = [one for one in found if hash_of(one[1].content) not in {one[0].after, one[0].before}]
    if edited and not anyway:
        entry, now, _ = edited[0]
        lost = [difference(Path(one.path), now.content or b"", old or b"") for one, now, old in edited]
        raise _changed_since(entry, client, now.content, "\n".join(lost))
    shown = []
    for entry, now, before in found:
        path = Path(entry.path)
        if hash_of(now.content) != entry.before:
            copy = None
            if now.content is not None and hash_of(now.content) != entry.after:
                copy = _free_name(path, _UNDONE)
                atomic_file.write(copy, now.content, now.mode)
            shown.append(
                FileDifference(
                    path=entry.path,
                    is_new=False,
                    removed=before is None,
                    difference=difference(path, now.content or b"", before or b""),
                    backup=str(copy) if copy is not None else None,
                )
            )
            if before is None:
                path.unlink(missing_ok=True)
            else:
                atomic_file.write(path, before, entry.mode)
    # Last, so that what fails half-way can be undone again: until here every copy is still there.
    records.remove(client.name)
    for entry in record.files:
        _clear(entry)
    return ClientChange(client=client.name, title=client.title, done=True, files=tuple(shown))


def difference(path: Path, before: bytes, after: bytes) -> str:
    """Return what differs, as lines with three around them."""
    old, new = (content.decode("utf-8", "replace").splitlines() for content in (before, after))
    name = str(path)
    text = "\n".join(difflib.unified_diff(old, new, name, name, lineterm=""))
    return text[:_LONGEST_DIFFERENCE]


def _proposed(
    config: ConfigFile, machine: Machine, facts: Facts, written: Mapping[str, WrittenFile]
) -> FileChange | None:
    file = own_file.read(config.path(machine))
    base = base_of(file, written.get(str(file.path)))
    try:
        after = changed(base, config.format, config.wanted(facts), config.unless_set)
    except FormatError as error:
        raise unreadable(file.path, error) from error
    return FileChange(file, after) if after != file.content else None


def _entry(change: FileChange, known: WrittenFile | None) -> WrittenFile:
    """The record of one file; a second time the copy of what was there at first is kept."""
    after = hashlib.sha256(change.after).hexdigest()
    if known is not None and known.after == hash_of(change.file.content):
        return known.model_copy(update={"after": after})
    return WrittenFile(
        path=str(change.path),
        backup=None if change.file.content is None else str(_free_name(change.path)),
        before=hash_of(change.file.content),
        after=after,
        mode=change.file.mode,
        made_folders=tuple(map(str, _missing_folders(change.path))),
    )


def _is_new(entry: WrittenFile, known: Mapping[str, WrittenFile]) -> bool:
    """Return True if the copy of a file has yet to be made."""
    before = known.get(entry.path)
    return before is None or before.backup != entry.backup


def _free_name(path: Path, end: str = _BACKUP) -> Path:
    place = path.with_name(path.name + end)
    number = 1
    while os.path.lexists(place):
        number += 1
        place = path.with_name(f"{path.name}{end}-{number}")
    return place


def _missing_folders(path: Path) -> list[Path]:
    """The folders that have to be made for a file, the innermost first."""
    missing = []
    for folder in path.parents:
        if folder.exists():
            break
        missing.append(folder)
    return missing


def _put_back(change: FileChange) -> None:
    if change.file.content is None:
        change.path.unlink(missing_ok=True)
    else:
        atomic_file.write(change.path, change.file.content, change.file.mode)


def _content_before(entry: WrittenFile, client: Client) -> bytes | None:
    if entry.backup is None:
        return None
    copy = own_file.read(Path(entry.backup))
    if hash_of(copy.content) != entry.before:
        raise HostError(
            Reason.CONFLICT,
            tr("{path} is not put back: the copy of what was there is gone or was changed.", path=entry.path),
            cause=tr("It was {backup}.", backup=entry.backup),
            fix=Fix(
                text=tr("Take the settings out by hand; what they are is printed."),
                command=f"sndr connect {client.name}",
            ),
            evidence={"path": entry.path, "backup": entry.backup},
        )
    return copy.content


def _clear(entry: WrittenFile) -> None:
    if entry.backup is not None:
        Path(entry.backup).unlink(missing_ok=True)
    for folder in entry.made_folders:
        try:
            os.rmdir(folder)
        except OSError:
            # Something else lies in it now.
            break


def _changed_meanwhile(path: Path, client: Client) -> HostError:
    return HostError(
        Reason.CONFLICT,
        tr("{path} was changed while you looked at the difference; nothing was written.", path=path),
        cause=tr("The client itself, or somebody else, saved it."),
        fix=Fix(text=tr("Look again."), command=f"sndr connect {client.name} --write"),
        evidence={"path": str(path)},
    )


def _changed_since(entry: WrittenFile, client: Client, now: bytes | None, lost: str) -> HostError:
    copy = (" " + tr("What was there lies in {backup}.", backup=entry.backup)) if entry.backup else ""
    return HostError(
        Reason.CONFLICT,
        tr(
            "{path} was removed since {title} was set up; nothing is undone.",
            path=entry.path,
            title=client.title,
        )
        if now is None
        else tr(
            "{path} was changed since {title} was set up; nothing is undone.",
            path=entry.path,
            title=client.title,
        ),
        cause=tr("Putting the old file back would lose that change.{copy}", copy=copy),
        fix=Fix(
            text=tr(
                "Take the settings out by hand; or undo it all the same, and what stands there "
                "now is kept beside it."
            ),
            command=f"sndr connect {client.name} --undo --yes",
        ),
        evidence={"path": entry.path, "difference": lost, "backup": entry.backup},
    )
