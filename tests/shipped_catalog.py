"""The catalogue that the program ships, read once for all tests of a worker."""

from functools import cache

from engine_host.catalog.index import Catalog
from engine_host.catalog.reader import Place, Reader
from engine_host.core.package_data import presets
from engine_host.protocol.presets import EntryOrigin

PLACE = Place(presets(), EntryOrigin.PROGRAM, "presets")


@cache
def shipped() -> Catalog:
    """Return all of it, with what is wrong with it."""
    return Reader((PLACE,)).read()
