"""The pages that were visited, to go back and forward over them."""

from dataclasses import dataclass

_MOST = 100


@dataclass(frozen=True)
class Place:
    """A page as one was on it: with the host that the pages were about; the empty name is this machine."""

    host: str
    page: str


class History:
    """Visited places in their order, and where in it one is; a new visit ends the way forward."""

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._at = -1

    def visit(self, place: Place) -> None:
        """Remember that a place is in front now; where one stands already is no new visit."""
        if self._places and self._places[self._at] == place:
            return
        self._places = [*self._places[: self._at + 1], place][-_MOST:]
        self._at = len(self._places) - 1

    @property
    def before(self) -> Place | None:
        """The place that back leads to."""
        return self._places[self._at - 1] if self._at > 0 else None

    @property
    def after(self) -> Place | None:
        """The place that forward leads to."""
        return self._places[self._at + 1] if self._at + 1 < len(self._places) else None

    def back(self) -> Place | None:
        """Stand one place earlier, and return it; None at the first one."""
        found = self.before
        self._at -= found is not None
        return found

    def forward(self) -> Place | None:
        """Stand one place later, and return it; None at the last one."""
        found = self.after
        self._at += found is not None
        return found

    def forget(self, host: str) -> None:
        """Leave out the places of a host that was removed; neighbours that are the same become one."""
        kept: list[Place] = []
        at = -1
        for number, place in enumerate(self._places):
            if place.host != host and (not kept or kept[-1] != place):
                kept.append(place)
            if number <= self._at:
                at = len(kept) - 1
        self._places, self._at = kept, max(at, 0 if kept else -1)
