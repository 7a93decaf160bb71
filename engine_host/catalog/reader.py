"""Reads the folders of the catalogue: one bad file never hides a good one."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine_host.catalog.checks import usable
from engine_host.catalog.entries import Loaded, load
from engine_host.catalog.index import Catalog
from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import EntryKind
from engine_host.protocol.language import tr
from engine_host.protocol.presets import CatalogFault, EntryOrigin

_SETTLED = 2 * 10**9
SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with entries; `label` stands for it where people read a file's name."""

    root: Path
    origin: EntryOrigin
    label: str

    def folder(self, kind: EntryKind) -> Path:
        """Return the folder of entries of a kind: a person's presets are at the top of their folder."""
        if kind is EntryKind.PRESET and self.origin is EntryOrigin.USER:
            return self.root
        return self.root / kind.value

    def name(self, path: Path) -> str:
        """Return the name of a file as people are shown it."""
        return (Path(self.label) / path.relative_to(self.root)).as_posix()


@dataclass
class Reader:
    """Reads the catalogue; a file that has not changed is not read again."""

    places: Sequence[Place]
    _known: dict[tuple[Path, int, int], Loaded[Any] | tuple[CatalogFault, ...]] = field(default_factory=dict)

    def read(self) -> Catalog:
        """The catalogue as the files say it now."""
        loaded: dict[EntryKind, dict[str, Loaded[Any]]] = {kind: {} for kind in EntryKind}
        faults: list[CatalogFault] = []
        kept: dict[tuple[Path, int, int], Loaded[Any] | tuple[CatalogFault, ...]] = {}
        for place in self.places:
            for kind in EntryKind:
                for path in _files(place, kind, faults):
                    found = self._load(kind, path, place, kept)
                    if isinstance(found, tuple):
                        faults += found
                        continue
                    other = loaded[kind].setdefault(found.entry.id, found)
                    if other is not found:
                        faults.append(
                            found.fault(
                                ("id",),
                                tr("{file} has this id already", file=other.file),
                                "Give it an id of its own; a preset that changes another one `extends` it.",
                            )
                        )
        self._known = kept
        return usable(loaded, faults)

    def _load(
        self,
        kind: EntryKind,
        path: Path,
        place: Place,
        kept: dict[tuple[Path, int, int], Loaded[Any] | tuple[CatalogFault, ...]],
    ) -> Loaded[Any] | tuple[CatalogFault, ...]:
        try:
            state = path.stat()
        except OSError:
            return load(kind, path, place.name(path), place.origin)
        key = (path, state.st_mtime_ns, state.st_size)
        found = self._known.get(key)
        if found is None:
            found = load(kind, path, place.name(path), place.origin)
        # A file system's clock ticks in milliseconds: what was written just now may be written again unseen.
        if time.time_ns() - state.st_mtime_ns > _SETTLED:
            kept[key] = found
        return found


def _files(place: Place, kind: EntryKind, faults: list[CatalogFault]) -> list[Path]:
    folder = place.folder(kind)
    try:
        return sorted(
            path
            for path in folder.iterdir()
            if path.suffix in SUFFIXES and not path.name.startswith(".") and path.is_file()
        )
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        message = tr("the folder cannot be read: {error}", error=error.strerror)
        faults.append(
            CatalogFault(
                severity=Severity.ERROR,
                file=place.name(folder),
                message=message,
                fix="Make it readable for you.",
            )
        )
        return []
