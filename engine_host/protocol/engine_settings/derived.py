"""Facts of several rows of the table: named options, and settings that exclude each other."""

from collections.abc import Iterator

from engine_host.protocol.engine_settings.row import EngineSetting
from engine_host.protocol.engine_settings.table import SETTINGS


def exclusive() -> Iterator[tuple[str, str]]:
    """Yield the pairs of settings that say the same in two ways."""
    return ((row.excludes, name) for name, row in SETTINGS.items() if row.excludes)


def settings_by_option() -> dict[str, tuple[EngineSetting, ...]]:
    """Return the named options of the command line, each with the settings that it sets."""
    found: dict[str, tuple[EngineSetting, ...]] = {}
    for row in SETTINGS.values():
        if row.option:
            found[row.option] = (*found.get(row.option, ()), row)
    return found
