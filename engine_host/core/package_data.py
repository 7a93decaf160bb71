"""Locate the files shipped with the program: the demo model and the catalogue."""

from functools import cache
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason


def resources() -> Path:
    """The folder of shipped files: in the source tree or an installed package, as a frozen program has one.

    Raises HostError(not_found) when the installation is incomplete.
    """
    return _shipped("resources", "sndr_gui/resources")


def presets() -> Path:
    """The folder of the catalogue's files. Raises HostError(not_found) as `resources` does."""
    return _shipped("presets", "engine_host/presets")


@cache
def _shipped(in_sources: str, installed: str) -> Path:
    here = Path(__file__).resolve().parent.parent.parent
    # The installed place first: beside an installed package, a folder called presets may be anybody's.
    candidates = [here / installed, here / in_sources]
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise HostError(
        Reason.NOT_FOUND,
        "The files that ship with the program are missing.",
        cause="The installation is incomplete.",
        fix="Install the program again.",
        evidence={"looked_in": [str(candidate) for candidate in candidates]},
    )
