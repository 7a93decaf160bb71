"""A patch as the host holds it: its folder and what its `patch.toml` says."""

from dataclasses import dataclass
from pathlib import Path

from engine_host.overlay.patch_file import PatchFile


@dataclass(frozen=True, slots=True)
class LoadedPatch:
    """One patch of the catalogue; `folder` holds the files that run inside the engine."""

    folder: Path
    file: PatchFile

    @property
    def id(self) -> str:
        """The patch's id, also its folder's name."""
        return self.file.id
