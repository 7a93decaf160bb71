"""The folder of records: written whole, bounded in size and number, read with care."""

import contextlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from engine_host.core import atomic_file
from engine_host.core.diagnosis.secrets import without_secrets
from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.core.sizes import size_text
from engine_host.protocol.bench.autopsy import AUTOPSY_FORMAT, Autopsy
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr

MOST_RECORDS = 20
LARGEST = 4 << 20
"""Bytes of a record at most; a full one is some hundred KiB."""
_MOST_LOOKED_AT = 100
# The time comes first: the order of the names is that of the ends.
_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}", re.ASCII)
_SHORTER = (1000, 120, 0)
"""Values of a series that are kept, fewer and fewer until the record is small enough."""


class AutopsyShelf:
    """The records below one folder; every function reads or writes the disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def new_id(self, at: float) -> str:
        """Return an id for an engine that ended at this time."""
        return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(at))}-{secrets.token_hex(3)}"

    def ids(self) -> list[str]:
        """Return the ids of all files that are named as records, the newest first."""
        return sorted(self._names(), reverse=True)

    def size(self, autopsy: str) -> int | None:
        """Return the bytes of a file; None where it cannot be asked."""
        try:
            return self._path(autopsy).lstat().st_size
        except OSError:
            return None

    def save(self, record: Autopsy) -> None:
        """Write a record, and remove the oldest above `MOST_RECORDS`.

        Raises HostError(disk_full), HostError(not_writable).
        """
        content = without_secrets(record.model_dump(mode="json"), record.engine.plan)
        for most in _SHORTER:
            text = json.dumps(_shortened(content, most), separators=(",", ":"))
            if len(text) <= LARGEST:
                break
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise atomic_file.saving_failed(self.folder, error) from error
        atomic_file.write(self._path(record.id), text)
        # With a clock that was set back the new one may have the lowest name.
        for old in [other for other in self.ids() if other != record.id][MOST_RECORDS - 1 :]:
            with contextlib.suppress(OSError):
                self._path(old).unlink()

    def open(self, autopsy: str) -> Autopsy:
        """Return one record. Raises HostError(not_found), HostError(unsupported) for what is none."""
        path = self._known(autopsy)
        try:
            return _parsed(files.read(path, LARGEST))
        except FileNotFoundError as error:
            raise no_such(autopsy) from error
        except (OSError, ValueError, RecursionError) as error:
            raise HostError(
                Reason.UNSUPPORTED,
                tr("The record {autopsy} cannot be read: {why}", autopsy=autopsy, why=_why(error)),
                cause="It was changed, cut off, or written by another version of this program.",
                fix=Fix(text="Remove it.", command=f"sndr autopsy {autopsy} --remove"),
                evidence={"path": str(path)},
            ) from error

    def remove(self, autopsy: str) -> None:
        """Remove one file. Raises HostError(not_found), HostError(not_writable)."""
        path = self._known(autopsy)
        try:
            path.unlink()
        except FileNotFoundError as error:
            raise no_such(autopsy) from error
        except OSError as error:
            raise HostError(
                Reason.NOT_WRITABLE,
                tr("{path} could not be removed: {error}.", path=path, error=error.strerror),
                cause="The folder is not writable for you, or a folder has the name of a record.",
                fix="Remove it by hand.",
                evidence={"path": str(path), "errno": error.errno},
            ) from error

    def _names(self) -> Iterator[str]:
        with contextlib.suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                name, dot, ending = entry.name.partition(".")
                if dot and ending == "json" and _ID.fullmatch(name):
                    yield name

    def _known(self, autopsy: str) -> Path:
        """The path of an id; one that is none leads nowhere, however it is spelt."""
        if not _ID.fullmatch(autopsy):
            raise no_such(autopsy)
        return self._path(autopsy)

    def _path(self, autopsy: str) -> Path:
        return self.folder / f"{autopsy}.json"


def no_such(autopsy: str) -> HostError:
    """The error for an id that is none of a record."""
    return HostError(
        Reason.NOT_FOUND,
        tr("There is no autopsy {autopsy}.", autopsy=autopsy[:80]),
        cause=tr("The newest {most_records} are kept.", most_records=MOST_RECORDS),
        fix=Fix(text="See which there are.", command="sndr autopsy"),
    )


def most_looked_at(ids: list[str]) -> list[str]:
    """Return as many as are worth opening: more are there only where somebody put them."""
    return ids[:_MOST_LOOKED_AT]


def _parsed(content: bytes) -> Autopsy:
    found = json.loads(content)
    said = found.get("format") if isinstance(found, dict) else None
    if said != AUTOPSY_FORMAT:
        raise ValueError(f"it is not in the form {AUTOPSY_FORMAT}")
    return Autopsy.model_validate(found)


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))[:200]}: {first['msg'][:200]}."
    if isinstance(error, OSError):
        return tr(
            "{error} (a record has {largest} at most).",
            error=error.strerror or tr("the system refuses it"),
            largest=size_text(LARGEST),
        )
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError | RecursionError):
        return tr("it is not JSON.")
    return f"{error}."


def _shortened(content: dict[str, Any], most: int) -> dict[str, Any]:
    series = []
    for one in content["series"]:
        left = one["values"][-most:] if most else []
        first = one["first"] + (len(one["values"]) - len(left)) * content["step"]
        series.append({**one, "first": first, "values": left})
    return {**content, "series": series if most else []}
