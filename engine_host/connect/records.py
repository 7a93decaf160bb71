"""The records of what was written into clients' files, by which it is undone."""

from pathlib import Path

from pydantic import ValidationError

from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.protocol.connect import WrittenFiles
from engine_host.protocol.errors import Reason

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
                f"The record {path} of what was written cannot be read, so nothing is undone by it.",
                cause="It is damaged. Copies of what was there lie beside the client's files (.sndr-backup).",
                fix="Put the copy back by hand, and delete the record.",
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
