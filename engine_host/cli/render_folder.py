"""A folder of files that a rendering was written into: known by its record, and nothing in it is lost."""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.outside import files as outside
from engine_host.core.outside import json_text
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.deploy import RenderedFile, Rendering

# Whose files these are, and each with its digest: what a person changed is not overwritten.
_RECORD = ".sndr-rendering.json"
# Nothing that is written down here is nearly as long: a larger file is somebody else's.
_LONGEST = 4 << 20
# A variable of a file that a person fills in, with or without a value; its comment is the line before it.
_VARIABLE = re.compile(r"^\s*#?\s*(?:export\s+)?([A-Z][A-Z0-9_]*)\s*=", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Record:
    """The record of an earlier rendering; `owner` is its name and target, empty where that is not known."""

    owner: tuple[str, str] = ("", "")
    files: Mapping[str, str] = field(default_factory=dict)


def write_files(folder: Path, rendering: Rendering, *, overwrite: bool) -> None:
    """Write all files; those of an earlier rendering that are not needed any more go.

    What a person filled in stays, with the names that it lacks added. Raises HostError(conflict) before
    anything is written when a file was changed by somebody or the folder is another rendering's,
    HostError(not_writable) and HostError(disk_full).
    """
    before = _record(folder)
    files = rendering.files
    names = {file.name for file in files}
    for name in names:
        place = PurePosixPath(name)
        if place.is_absolute() or ".." in place.parts:
            raise HostError(
                Reason.INTERNAL,
                tr("{name} is no name of a file in a folder.", name=name),
                fix="Update this program.",
                evidence={"name": name},
            )
    if not overwrite:
        _refuse_overwriting(folder, rendering, before)
    for file in files:
        path = folder / file.name
        mode = 0o600 if file.keep else 0o755 if file.executable else 0o644
        there = _text(path) if file.keep else None
        _write(folder, path, file.text if there is None else _with_missing(there, file.text), mode)
    for name in set(before.files) - names:
        if _digest_of(folder / name) == before.files[name]:
            (folder / name).unlink(missing_ok=True)
    record = {
        "name": rendering.name,
        "target": rendering.target.value,
        "files": {file.name: _digest(file.text.encode()) for file in files if not file.keep},
    }
    _write(folder, folder / _RECORD, json.dumps(record, indent=1) + "\n", 0o644)


def _refuse_overwriting(folder: Path, rendering: Rendering, before: _Record) -> None:
    """Raise HostError(conflict) when the folder is another rendering's, or somebody changed its files."""
    if before.owner != ("", "") and before.owner != (rendering.name, rendering.target.value):
        name, target = before.owner
        raise HostError(
            Reason.CONFLICT,
            tr(
                "{folder} holds {name} for {target}, and this is {rendering} for {target2}. Nothing "
                "was written.",
                folder=folder,
                name=name,
                target=target,
                rendering=rendering.name,
                target2=rendering.target.value,
            ),
            cause="Another start was written into the folder before.",
            fix=Fix(text="Name another folder, or give --overwrite to put this one in its place."),
            evidence={"folder": str(folder), "name": name, "target": target},
        )
    changed = sorted(_changed(folder, rendering.files, before.files))
    if changed:
        raise HostError(
            Reason.CONFLICT,
            tr(
                "{folder} has files that would be lost: {changed}. Nothing was written.",
                folder=folder,
                changed=", ".join(changed[:5]),
            ),
            cause="They were changed since they were written, or are not from here.",
            fix=Fix(text="Name another folder, or give --overwrite."),
            evidence={"folder": str(folder), "files": changed},
        )


def _write(folder: Path, path: Path, text: str, mode: int) -> None:
    try:
        atomic_file.write(path, text, mode)
    except HostError as error:
        if error.reason is not Reason.NOT_WRITABLE:
            raise
        number = error.problem.evidence.get("errno")
        why = os.strerror(number) if isinstance(number, int) else tr("not writable")
        raise HostError(
            Reason.NOT_WRITABLE,
            tr("{path} could not be written: {why}.", path=path, why=why),
            cause=tr("You cannot make files in {folder}.", folder=folder),
            fix="Name a folder of yours with --output.",
            evidence=error.problem.evidence,
        ) from error


def _with_missing(there: str, text: str) -> str:
    """A file that a person filled in, with the variables that it does not name yet."""
    known = set(_VARIABLE.findall(there))
    lines = text.splitlines()
    added: list[str] = []
    for number, line in enumerate(lines):
        found = _VARIABLE.match(line)
        if found is not None and found[1] not in known:
            added += [lines[number - 1], line] if number and f" {found[1]}:" in lines[number - 1] else [line]
    if not added:
        return there
    return there + ("" if there.endswith("\n") or not there else "\n") + "\n".join(added) + "\n"


def _changed(folder: Path, files: tuple[RenderedFile, ...], before: Mapping[str, str]) -> list[str]:
    """Files there that this would overwrite and that are not as an earlier rendering wrote them."""
    found = []
    for file in files:
        now = None if file.keep else _digest_of(folder / file.name)
        if now is not None and now not in {before.get(file.name), _digest(file.text.encode())}:
            found.append(file.name)
    return found


def _record(folder: Path) -> _Record:
    """Read the record of an earlier rendering; empty if there is none or it cannot be read."""
    try:
        known = json_text.read_object(folder / _RECORD)
    except (OSError, ValueError):
        return _Record()
    owner = (str(known.get("name", "")), str(known.get("target", "")))
    files = known.get("files")
    if not isinstance(files, dict):
        return _Record()
    # A record is a file like any other: it must not make us remove something outside of the folder.
    inside = {
        name: digest
        for name, digest in files.items()
        if isinstance(digest, str) and not os.path.isabs(name) and ".." not in PurePosixPath(name).parts
    }
    return _Record(owner, inside)


def _text(path: Path) -> str | None:
    """A text that a person filled in; None where there is none. Raises HostError(not_writable)."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(
            Reason.NOT_WRITABLE,
            tr(
                "{path} cannot be read, so what you filled in could be lost. It was left as it is.", path=path
            ),
            cause=str(error),
            fix="Make it readable for you, or name another folder with --output.",
            evidence={"path": str(path)},
        ) from error


def _digest_of(path: Path) -> str | None:
    """The digest of a file; None where there is none, an empty word where it cannot be read."""
    try:
        return _digest(outside.read(path, _LONGEST))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return ""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
