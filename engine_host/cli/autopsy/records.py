"""The records of engines that died: asked of the host, or read from its folder where none runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from engine_host.cli.output import Output
from engine_host.cli.start.host import connected
from engine_host.cli.text.chosen_host import chosen_host
from engine_host.client.sync import ControlClient
from engine_host.core.diagnosis import listing
from engine_host.core.diagnosis.shelf import AutopsyShelf
from engine_host.core.errors import HostError
from engine_host.core.paths import Folders
from engine_host.protocol.bench.autopsy import AutopsyPage, OpenedAutopsy
from engine_host.protocol.operations import table as ops


class Records(Protocol):
    """The records, wherever they are."""

    def page(self) -> AutopsyPage:
        """Return the list. Raises HostError."""

    def open(self, autopsy: str) -> OpenedAutopsy:
        """Return one record with its reading. Raises HostError."""

    def remove(self, autopsy: str) -> AutopsyPage:
        """Remove one, and return what is left. Raises HostError."""


class RecordsOfHost:
    """The records as a host tells them."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def page(self) -> AutopsyPage:
        """Return the list. Raises HostError."""
        return self._client.call(ops.AUTOPSIES)

    def open(self, autopsy: str) -> OpenedAutopsy:
        """Return one record with its reading. Raises HostError."""
        return self._client.call(ops.AUTOPSY, id=autopsy)

    def remove(self, autopsy: str) -> AutopsyPage:
        """Remove one, and return what is left. Raises HostError."""
        return self._client.call(ops.REMOVE_AUTOPSY, id=autopsy)


class RecordsOnDisk:
    """The records in the folder of this machine's last host."""

    def __init__(self, folders: Folders) -> None:
        self._shelf = AutopsyShelf(folders.autopsies)

    def page(self) -> AutopsyPage:
        """Return the list."""
        return listing.page_of(self._shelf)

    def open(self, autopsy: str) -> OpenedAutopsy:
        """Return one record with its reading. Raises HostError(not_found), HostError(unsupported)."""
        return listing.opened(self._shelf, autopsy)

    def remove(self, autopsy: str) -> AutopsyPage:
        """Remove one, and return what is left. Raises HostError(not_found), HostError(not_writable)."""
        self._shelf.remove(autopsy)
        return self.page()


@contextmanager
def records_of(out: Output) -> Iterator[Records]:
    """Yield the records of the host, or of the folder where none runs here. Raises HostError."""
    try:
        client = connected()
    except HostError as error:
        if chosen_host() or not error.lost:
            raise
        out.note("No engine host runs; these are the records of the last one.")
        yield RecordsOnDisk(Folders.resolve())
        return
    with client:
        yield RecordsOfHost(client)
