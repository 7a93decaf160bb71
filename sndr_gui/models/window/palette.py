"""The commands that the palette offers, and which of them fit what was typed."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sndr_gui.kit.settings import LONGEST_RECENT, MOST_RECENT
from sndr_gui.models.window import fuzzy

MOST_SHOWN = 50
_LONGEST_TITLE = 2 * fuzzy.LONGEST_NAME
# Of each letter of a word that is not in the title but begins one of the other words.
_ELSEWHERE = 3
_RECENT = 2


@dataclass(frozen=True)
class Entry:
    """One command: what it is called, a hint (its keys, or what kind it is), and what it does.

    `words` are found too and not shown. `weight` lets pages and actions come before names that fit as well.
    `key` tells it from the others for as long as the program is used; without one the title does.
    `command` is the command line that does the same, shown below the list.
    """

    title: str
    hint: str
    run: Callable[[], object]
    words: str = ""
    weight: int = 0
    key: str = ""
    command: str = ""

    @property
    def remembered(self) -> str:
        """The text that is kept of it among the recent ones."""
        return (self.key or self.title)[:LONGEST_RECENT]


PAGE, ACTION = 6, 4
"""Weights of pages and actions."""


@dataclass(frozen=True)
class Found:
    """An entry that fits: its title as it may be shown, and the places of the letters that were typed."""

    entry: Entry
    title: str
    places: tuple[int, ...] = ()

    @property
    def hint(self) -> str:
        """The hint of the entry in one line."""
        return fuzzy.one_line(self.entry.hint)


@dataclass(frozen=True)
class _Candidate:
    """An entry as it is searched: its place among all, title, other words, and the letters of both."""

    place: int
    name: fuzzy.Name
    words: str
    letters: frozenset[str]
    weight: int
    entry: Entry


class Finder:
    """Finds entries; what fitted a shorter text is where a longer one is looked for."""

    def __init__(self, entries: Sequence[Entry] = (), recent: Sequence[str] = ()) -> None:
        order = {key: place for place, key in enumerate(recent)}
        self._all: list[_Candidate] = []
        known = []
        for place, entry in enumerate(entries):
            name = fuzzy.prepared(entry.title[:_LONGEST_TITLE])
            before = order.get(entry.remembered)
            weight = entry.weight + (_RECENT if before is not None else 0)
            words = f" {entry.words} {entry.hint}".lower()
            one = _Candidate(place, name, words, name.letters.union(words), weight, entry)
            self._all.append(one)
            if before is not None:
                known.append((before, one))
        self._known = [one for _before, one in sorted(known, key=lambda two: (two[0], two[1].place))]
        self._typed, self._fitting = "", self._all

    @property
    def total(self) -> int:
        """The number of entries."""
        return len(self._all)

    @property
    def fitting(self) -> int:
        """The number of entries that fit what was typed last."""
        return len(self._fitting)

    def find(self, typed: str) -> list[Found]:
        """Return what fits, the best first, and without a text the recent ones first; at most 50."""
        words = fuzzy.lowered(typed[: fuzzy.LONGEST_TYPED]).split()
        if not words:
            self._typed, self._fitting = "", self._all
            again = {one.place for one in self._known}
            others = [one for one in self._all[: MOST_SHOWN + len(again)] if one.place not in again]
            return [Found(one.entry, one.name.text) for one in [*self._known, *others][:MOST_SHOWN]]
        wanted = " ".join(words)
        among = self._fitting if self._typed and wanted.startswith(self._typed) else self._all
        asked = [(word, frozenset(word)) for word in words]
        letters = frozenset("".join(words))
        ranked = []
        fitting = []
        for one in among:
            if letters <= one.letters and (reached := _score(one, asked)) is not None:
                fitting.append(one)
                ranked.append((-reached, len(one.name.text), one.place, one))
        self._typed, self._fitting = wanted, fitting
        return [_found(one, words) for _score_of, _length, _place, one in heapq.nsmallest(MOST_SHOWN, ranked)]


def _score(one: _Candidate, asked: Sequence[tuple[str, frozenset[str]]]) -> int | None:
    total = one.weight
    held = one.name.letters
    for word, letters in asked:
        reached = fuzzy.score(one.name, word) if letters <= held else None
        if reached is None:
            if f" {word}" not in one.words:
                return None
            reached = _ELSEWHERE * len(word)
        total += reached
    return total


def _found(one: _Candidate, words: Sequence[str]) -> Found:
    places = {place for word in words for place in fuzzy.matched(one.name, word)}
    return Found(one.entry, one.name.text, tuple(sorted(places)))


def with_recent(recent: Sequence[str], entry: Entry) -> tuple[str, ...]:
    """Return the recent ones with an entry that was just used at the top."""
    return (entry.remembered, *(key for key in recent if key != entry.remembered))[:MOST_RECENT]
