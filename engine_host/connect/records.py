"""The records of what was written into clients' files, by which it is undone."""

import hashlib
from pathlib import Path

from pydantic import ValidationError

from engine_host.connect import own_file
from engine_host.connect.own_file import OwnFile
from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.protocol.endpoint.connect import WrittenFile, WrittenFiles
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

_MOST = 1 << 20


class Records:
    """One file for each client, in the data folder."""

    def __init__(self, data_folder: Path) -> None:
        self._folder = data_folder / "connected"

    def exists(self, client: str) -> bool:
        """Tell whether something was written for a client and not undone."""
        return self._path(client).is_file()

    def read(self, client: str) -> WrittenFiles | None:
        """Return what was written; None if nothing was. Raises HostError(conflict) for a damaged record."""
        path = self._path(client)
        try:
            return WrittenFiles.model_validate_json(files.read(path, _MOST))
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            raise HostError(
                Reason.CONFLICT,
                tr(
                    "The record {path} of what was written cannot be read, so nothing is undone by it.",
                    path=path,
                ),
                cause=tr(
                    "It is damaged. Copies of what was there lie beside the client's files (.sndr-backup)."
                ),
                fix=tr("Put the copy back by hand, and delete the record."),
                evidence={"path": str(path)},
            ) from error

    def save(self, record: WrittenFiles) -> None:
        """Keep a record. Raises HostError(disk_full), HostError(not_writable)."""
        atomic_file.write(self._path(record.client), record.model_dump_json(indent=2))

    def remove(self, client: str) -> None:
        """Forget what was written."""
        self._path(client).unlink(missing_ok=True)

    def _path(self, client: str) -> Path:
        return self._folder / f"{client}.json"


def written_files(record: WrittenFiles | None) -> dict[str, WrittenFile]:
    """Return the files of a record by their paths; none of no record."""
    return {one.path: one for one in record.files} if record else {}


def base_of(file: OwnFile, known: WrittenFile | None) -> bytes:
    """Return what settings are merged into: what was there before, if a file is as this program left it."""
    content = file.content or b""
    if known is None or known.after != hash_of(file.content):
        return content
    if known.backup is None:
        return b""
    try:
        copy = own_file.read(Path(known.backup)).content
    except HostError:
        copy = None
    # Without its copy the file cannot be put back either, and undoing says so.
    return copy if copy is not None and hash_of(copy) == known.before else content


def hash_of(content: bytes | None) -> str | None:
    """Return the SHA-256 of a file's content; None for a file that is not there."""
    return None if content is None else hashlib.sha256(content).hexdigest()
