"""The clients that are on this machine, and what their files say about the endpoint."""

import os
from collections.abc import Mapping
from pathlib import Path

from engine_host.connect import own_file
from engine_host.connect.clients.definition import Client, ConfigFile
from engine_host.connect.clients.table import CLIENTS
from engine_host.connect.facts import Facts
from engine_host.connect.formats.text import value_of
from engine_host.connect.formats.tree import FormatError, at, merged, same
from engine_host.connect.machine import Machine
from engine_host.connect.records import Records, base_of, written_files
from engine_host.core.errors import HostError
from engine_host.protocol.endpoint.connect import ClientEntry, ClientList, ConnectionState, WrittenFile
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr

_LONGEST_ADDRESS = 300


def client_list(machine: Machine, records: Records, url: str | None, facts: Facts | None) -> ClientList:
    """Return all clients, found ones first; `facts` is None while no model runs, `url` without a host."""
    entries = [entry_of(client, machine, records, url, facts) for client in CLIENTS]
    entries.sort(key=lambda entry: not entry.found)
    return ClientList(url=url, model=facts.model if facts else None, clients=tuple(entries))


def entry_of(
    client: Client, machine: Machine, records: Records, url: str | None, facts: Facts | None
) -> ClientEntry:
    """Return what is known of one client."""
    state, address, problem = _state(client, machine, records, url, facts)
    return ClientEntry(
        name=client.name,
        title=client.title,
        kind=client.kind,
        found=tuple(_signs(client, machine)),
        state=state,
        address=address,
        files=tuple(str(config.path(machine)) for config in client.files),
        writable=bool(client.files),
        undo=records.exists(client.name),
        problem=problem,
    )


def unreadable(path: Path, error: FormatError) -> HostError:
    """Return the refusal of a file that cannot be read in its format."""
    return HostError(
        Reason.SETTING_INVALID,
        tr("{path} is left alone: {error}.", path=path, error=error),
        cause=tr("A file that this program cannot read in full it does not write."),
        fix=Fix(text=tr("Correct that place, or put the settings in by hand."), command="sndr connect"),
        evidence={"path": str(path)},
    )


def _signs(client: Client, machine: Machine) -> list[str]:
    """Return what shows that a client is installed: its programs, its folders."""
    programs = [found for name in client.programs if (found := machine.which(name)) is not None]
    folders = [str(folder) for folder in client.folders(machine) if folder.is_dir()]
    return [*programs[:1], *folders, *(str(path) for path in _matching(client, machine))]


def _matching(client: Client, machine: Machine) -> list[Path]:
    found: list[Path] = []
    for pattern in client.patterns:
        try:
            found += sorted(machine.home.glob(pattern))[-1:]
        except OSError:
            # A folder that may not be read shows nothing.
            continue
    return found


def _state(
    client: Client, machine: Machine, records: Records, url: str | None, facts: Facts | None
) -> tuple[ConnectionState, str | None, Problem | None]:
    if client.impossible:
        return ConnectionState.IMPOSSIBLE, None, None
    if not client.files:
        return ConnectionState.BY_HAND, None, None
    try:
        written = _written(client, records)
        trees = [_trees(config, machine, written) for config in client.files]
    except HostError as error:
        return ConnectionState.UNREADABLE, None, error.problem
    first = client.files[0]
    said = at(trees[0][0], first.address)
    if not isinstance(said, str):
        return ConnectionState.NOT_SET_UP, None, None
    said = said[:_LONGEST_ADDRESS]
    if not _leads_here(said, url):
        return ConnectionState.OTHER, said, None
    current = facts is not None and all(
        _says_it(config, *found, facts) for config, found in zip(client.files, trees, strict=True)
    )
    # Without a model nobody can tell; what is set leads here.
    connected = current or facts is None
    return ConnectionState.CONNECTED if connected else ConnectionState.OUTDATED, said, None


def _leads_here(said: str, url: str | None) -> bool:
    """Return True for the endpoint's address, with or without `/v1` and what a client adds to it."""
    if url is None:
        return False
    root = url.removesuffix("/v1")
    return said.rstrip("/") in {root, url, f"{url}/chat/completions"}


def _says_it(config: ConfigFile, tree: object, base: object, facts: Facts) -> bool:
    try:
        return same(merged(base, config.wanted(facts), config.unless_set), tree)
    except FormatError:
        return False


def _written(client: Client, records: Records) -> dict[str, WrittenFile]:
    try:
        return written_files(records.read(client.name))
    except HostError:
        # Writing and undoing say that the record is damaged.
        return {}


def _trees(config: ConfigFile, machine: Machine, written: Mapping[str, WrittenFile]) -> tuple[object, object]:
    """The content of a file, and what settings would be merged into; both are None where there is no file."""
    path = config.path(machine)
    if not os.path.lexists(path):
        return None, None
    file = own_file.read(path)
    try:
        base = value_of(base_of(file, written.get(str(path))), config.format)
        return None if file.content is None else value_of(file.content, config.format), base
    except FormatError as error:
        raise unreadable(path, error) from error
