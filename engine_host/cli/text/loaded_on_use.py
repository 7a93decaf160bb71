"""Commands that are loaded when they are used: `sndr status` does not wait for what `sndr bench` needs."""

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module

import click

from engine_host.core.processes.loading import loading


class LoadedOnUse(MutableMapping[str, click.Command]):
    """Commands by name; a row says where one lies (`module:attribute`), then what is added to it."""

    def __init__(self, package: str, rows: Mapping[str, tuple[str, ...]]) -> None:
        self._package = package
        self._rows = rows
        self._commands: dict[str, click.Command] = {}
        self._names = dict.fromkeys(rows)

    def __getitem__(self, name: str) -> click.Command:
        """Return the command, loaded now if it was not yet; raises KeyError for a name that is none."""
        if name in self._names and name not in self._commands:
            first, *added = (self._load(place) for place in self._rows[name])
            for one in added:
                assert isinstance(first, click.Group)
                first.add_command(one)
            self._commands[name] = first
        return self._commands[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        """Take in a command that is loaded already."""
        self._names[name] = None
        self._commands[name] = command

    def __delitem__(self, name: str) -> None:
        """Forget a command."""
        del self._names[name]
        self._commands.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        """Return the names, none of them loaded for it."""
        return iter(self._names)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._names)

    def _load(self, place: str) -> click.Command:
        module, attribute = place.split(":")
        with loading():
            found = getattr(import_module(f"{self._package}.{module}"), attribute)
        assert isinstance(found, click.Command), place
        return found
