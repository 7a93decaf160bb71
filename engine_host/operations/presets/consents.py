"""Consent to what files from somebody else ask for, remembered by their content."""

import hashlib
import time
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from engine_host.catalog.demands import demands
from engine_host.catalog.entries import Loaded
from engine_host.catalog.index import Catalog
from engine_host.core.errors import consent_needed
from engine_host.core.store import Store
from engine_host.protocol.launch.consents import ConsentNeeded, Demand
from engine_host.protocol.presets import EntryOrigin

_KIND = "consent"
_KEPT = 10_000


class Trust(StrEnum):
    """The trust in a content: none, enough to lie among one's own files, or enough to start."""

    FOREIGN = "foreign"
    IMPORTED = "imported"
    TRUSTED = "trusted"


_ORDER = tuple(Trust)


class PresetConsents:
    """Knows the contents of a person's own files that were allowed; a content that is not known is foreign.

    Contents that ask for nothing are not kept: there is nothing to consent to.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def trust(self, text: str) -> Trust | None:
        """Return how far a content is trusted; None for one that is not known."""
        return self._of(sha256(text))

    def _of(self, digest: str) -> Trust | None:
        found = self._store.get(_KIND, digest)
        return None if found is None else Trust(found)

    def note(self, text: str, trust: Trust) -> None:
        """Remember how far a content is trusted; what is known of it already is never taken back.

        Raises HostError when the database cannot be used.
        """
        self._note(sha256(text), trust)

    def _note(self, digest: str, trust: Trust) -> None:
        known = self._of(digest)
        if known is None or _ORDER.index(known) < _ORDER.index(trust):
            self._store.put(_KIND, digest, time.time(), trust.value)
            self._store.prune(_KIND, _KEPT)

    def to_start(self, catalog: Catalog, preset_id: str, hardware: str | None) -> ConsentNeeded | None:
        """Return what has to be consented to before a preset's first start; None for nothing.

        Raises HostError(not_found).
        """
        asked: list[Demand] = []
        contents: list[str] = []
        for one in catalog.files_of(preset_id, hardware):
            if one.origin is EntryOrigin.PROGRAM or self.trust(one.document.text) is Trust.TRUSTED:
                continue
            if found := demands(one, catalog):
                asked += found
                contents.append(sha256(one.document.text))
        if not asked:
            return None
        digest = contents[0] if len(contents) == 1 else sha256(" ".join(contents))
        return ConsentNeeded(digest=digest, demands=tuple(asked), contents=tuple(contents))

    def to_import(self, text: str, asked: tuple[Demand, ...]) -> ConsentNeeded | None:
        """Return what has to be consented to before a file is taken in; None for nothing."""
        if not asked or self.trust(text) in {Trust.IMPORTED, Trust.TRUSTED}:
            return None
        digest = sha256(text)
        return ConsentNeeded(digest=digest, demands=asked, contents=(digest,))

    def check(self, needed: ConsentNeeded | None, given: str | None, doing: str, command: str) -> None:
        """Remember a consent to start that is given. Raises HostError(consent_needed) where none is."""
        if needed is None or all(self._of(digest) is Trust.TRUSTED for digest in needed.contents):
            return
        if given != needed.digest:
            raise consent_needed(needed, doing, f"{command} --accept {needed.digest}")
        for digest in needed.contents:
            self._note(digest, Trust.TRUSTED)

    def saved(self, catalog: Catalog, text: str, asked: tuple[Demand, ...], previous: str | None) -> None:
        """Remember a text that a person saves as their own.

        What it has from a file that is not trusted stays as little trusted: opening somebody's file, changing
        a number and saving it is no consent.
        """
        if not asked or self.trust(text) is not None:
            return
        others = dict(self._untrusted(catalog))
        found = [others[demand.what] for demand in asked if demand.what in others]
        known = {one.document.text for one in catalog.own()}
        if previous and previous not in known and self.trust(previous) is None:
            # A file that could not be used, and that this program did not write.
            found.append(Trust.FOREIGN)
        self.note(text, min(found, key=_ORDER.index, default=Trust.TRUSTED))

    def removed(self, text: str) -> None:
        """Remember a text that is removed, so that bringing it back is no way to make it one's own."""
        if self.trust(text) is None:
            self.note(text, Trust.FOREIGN)

    def _untrusted(self, catalog: Catalog) -> Iterator[tuple[str, Trust]]:
        """Yield what files that are not trusted ask for."""
        found: list[tuple[Trust, Loaded[Any]]] = [
            (self.trust(one.document.text) or Trust.FOREIGN, one) for one in catalog.own()
        ]
        # The least trusted last: a dictionary keeps that.
        for trust, one in sorted(found, key=lambda pair: -_ORDER.index(pair[0])):
            if trust is not Trust.TRUSTED:
                yield from ((demand.what, trust) for demand in demands(one, catalog))


def sha256(text: str) -> str:
    """Return the SHA-256 of a text as a file holds it."""
    return hashlib.sha256(text.encode()).hexdigest()
