"""The places of a rendering's files on the machine whose systemd or containers carry it out."""

import hashlib
from dataclasses import dataclass

from engine_host.protocol.launch.deploy import Rendering

UNITS, FOLDER = "units", "folder"
"""The folder of the user's units, and the service's own."""
_OF_SYSTEMD = (".service", ".timer")
# What it does is done by whoever places the files.
_INSTALLER = "install.sh"


@dataclass(frozen=True, slots=True)
class PlacedFile:
    """One file: `place` is the kind of its folder; one to `keep` stays as a person filled it in."""

    place: str
    name: str
    text: str
    executable: bool = False
    keep: bool = False

    @property
    def sha256(self) -> str:
        """The hash of its content."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def placed(rendering: Rendering) -> tuple[PlacedFile, ...]:
    """Return all files of a rendering with their places."""
    return tuple(
        PlacedFile(
            UNITS if one.name.endswith(_OF_SYSTEMD) else FOLDER, one.name, one.text, one.executable, one.keep
        )
        for one in rendering.files
        if one.name != _INSTALLER
    )
