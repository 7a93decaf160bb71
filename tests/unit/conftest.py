"""Files that no unit test changes are read once a worker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine_host.catalog import reader
from engine_host.catalog.entries import Loaded, load
from engine_host.core.package_data import presets
from engine_host.protocol.catalog import EntryKind
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.presets import CatalogFault, EntryOrigin


@pytest.fixture(autouse=True, scope="session")
def shipped_entries() -> Iterator[None]:
    """Keep the shipped entries, of which each test's own reader would read all hundred again."""
    shipped = presets()
    known: dict[object, Loaded[Any] | tuple[CatalogFault, ...]] = {}

    def kept(
        kind: EntryKind, path: Path, file: str, origin: EntryOrigin
    ) -> Loaded[Any] | tuple[CatalogFault, ...]:
        if not path.is_relative_to(shipped):
            return load(kind, path, file, origin)
        # A test adds a setting, and entries of before do not have it.
        key = (path, path.stat().st_mtime_ns, file, origin, tuple(Overrides.model_fields))
        if key not in known:
            known[key] = load(kind, path, file, origin)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "load", kept)
        yield
