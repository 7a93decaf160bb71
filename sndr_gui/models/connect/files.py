"""The clients' files of this machine, for the model of Connect: each method is one for a thread.

This module is imported in a thread too, for what it needs takes longer than a click may.
"""

from dataclasses import dataclass

from engine_host.client import Folders
from engine_host.connect.change import Change, propose, undo, write
from engine_host.connect.clients.definition import Client
from engine_host.connect.clients.table import CLIENTS, client_named
from engine_host.connect.facts import Facts
from engine_host.connect.found import client_list
from engine_host.connect.machine import Machine
from engine_host.connect.records import Records
from engine_host.connect.settings import settings_of
from engine_host.protocol.endpoint.connect import ClientChange, ClientEntry, ClientSettings


@dataclass(frozen=True)
class Read:
    """All that was read of this machine at once; `impossible` says why a client cannot be used."""

    clients: tuple[ClientEntry, ...]
    settings: dict[str, ClientSettings]
    impossible: dict[str, str]


class Files:
    """A person's files of settings, and the one change that was proposed last."""

    def __init__(self) -> None:
        self._machine = Machine.here()
        self._records = Records(Folders.resolve().data)
        self._proposal: Change | None = None

    def client(self, name: str) -> Client:
        """Return a client. Raises HostError(not_found)."""
        return client_named(name)

    def read(self, url: str | None, facts: Facts | None) -> Read:
        """Read all clients and, where a model runs, what each has to be told."""
        clients = client_list(self._machine, self._records, url, facts).clients
        settings: dict[str, ClientSettings] = {}
        if facts is not None:
            possible = [client for client in CLIENTS if not client.impossible]
            settings = {client.name: settings_of(client, self._machine, facts) for client in possible}
        impossible = {client.name: client.impossible for client in CLIENTS if client.impossible}
        return Read(clients, settings, impossible)

    def propose(self, name: str, facts: Facts) -> ClientChange:
        """Work out what writing would change, and keep it. Raises HostError."""
        self._proposal = propose(client_named(name), self._machine, facts, self._records)
        return self._proposal.shown()

    def write(self) -> ClientChange | None:
        """Write what was proposed; None where nothing was. Raises HostError."""
        proposal, self._proposal = self._proposal, None
        return write(proposal, self._records) if proposal is not None else None

    def undo(self, name: str, *, anyway: bool = False) -> ClientChange:
        """Put back what was there before; with `anyway` also in a file that was changed since.

        Raises HostError.
        """
        return undo(client_named(name), self._records, anyway=anyway)
