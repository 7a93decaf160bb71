"""The commands that the palette offers, and which of them fit what was typed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One command: what it is called, a hint (its keys, or what kind it is), and what it does."""

    title: str
    hint: str
    run: Callable[[], object]
    words: str = ""


def matching(entries: Sequence[Entry], typed: str) -> list[Entry]:
    """Return the entries that match: first titles that begin so, then titles with such a word."""
    wanted = typed.casefold().split()
    if not wanted:
        return list(entries)
    ranked = []
    for place, entry in enumerate(entries):
        title = entry.title.casefold()
        everything = f"{title} {entry.words.casefold()}"
        if all(word in everything for word in wanted):
            starts = any(part.startswith(wanted[0]) for part in title.split())
            rank = 0 if title.startswith(wanted[0]) else 1 if starts else 2
            ranked.append((rank, place, entry))
    return [entry for _rank, _place, entry in sorted(ranked, key=lambda found: found[:2])]
