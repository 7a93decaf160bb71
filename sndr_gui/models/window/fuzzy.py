"""Finds typed letters in names, in their order; the better the more of them begin words or stand together."""

from __future__ import annotations

import re
from functools import lru_cache

from engine_host.client import visible

LONGEST_NAME = 160
"""Letters of a name that are shown and looked at."""
LONGEST_TYPED = 64
# Of a letter that a name repeats endlessly, the first places suffice to score it.
_MOST_PLACES = 12

_NAME_START, _WORD_START, _PART_START = 10, 8, 6
_FOLLOWS, _INSIDE, _SKIPPED = 7, -1, -2
_WHOLE = 4


_WORDS = re.compile(r"(?<![^\W_])[^\W_]")
_PARTS = re.compile(r"(?<=[^\W\dA-Z_])[A-ZÀ-ÞА-Я]|(?<=\D)\d|(?<=\d)[^\W\d_]")


class Name:
    """A name as it is searched: its letters in lower case, and what each is worth as the begin of a piece."""

    __slots__ = ("_places", "letters", "lower", "text", "worth")

    def __init__(self, text: str) -> None:
        self.text = text
        self.lower = lowered(text)
        self.letters = frozenset(self.lower)
        self._places: dict[str, list[int]] = {}
        worth = self.worth = [_INSIDE] * len(text)
        for found in _PARTS.finditer(text):
            worth[found.start()] = _PART_START
        for found in _WORDS.finditer(text):
            worth[found.start()] = _WORD_START
        if worth and worth[0] == _WORD_START:
            worth[0] = _NAME_START

    def places(self, letter: str) -> list[int]:
        """Return where a letter stands; looked for once."""
        found = self._places.get(letter)
        if found is None:
            found = self._places[letter] = []
            place = self.lower.find(letter)
            while place >= 0 and len(found) < _MOST_PLACES:
                found.append(place)
                place = self.lower.find(letter, place + 1)
        return found


_Step = tuple[int, int, "_Step | None"]
"""A letter of a match: the score up to it, its place, and the letter before it."""


@lru_cache(maxsize=8192)
def prepared(text: str) -> Name:
    """Return a name as it is searched; remembered, since the same names come with every opening."""
    return Name(one_line(text))


def one_line(text: str) -> str:
    """Return a name from outside as one line in which nothing steers the text around it."""
    return visible(" ".join(text[: 2 * LONGEST_NAME].split()))[:LONGEST_NAME]


def lowered(text: str) -> str:
    """Return a text in lower case, letter by letter: places in it are places in the text."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(one if len(small := one.lower()) != 1 else small for one in text)


def score(name: Name, word: str) -> int | None:
    """Return how well a name holds the letters of a word in their order; None where it does not."""
    if (start := _piece(name, word)) >= 0:
        whole = _WHOLE if len(word) == len(name.lower) else 0
        return name.worth[start] + _FOLLOWS * (len(word) - 1) + whole
    if (step := _best(name, word)) is not None:
        return step[0]
    return 0 if _first(name, word) else None


def matched(name: Name, word: str) -> tuple[int, ...]:
    """Return the places of a word's letters in a name, as its score counts them; none where it lacks one."""
    if (start := _piece(name, word)) >= 0:
        return tuple(range(start, start + len(word)))
    step = _best(name, word)
    if step is None:
        return _first(name, word)
    found = []
    while step is not None:
        found.append(step[1])
        step = step[2]
    return tuple(reversed(found))


def _piece(name: Name, word: str) -> int:
    """Return where a name has what was typed in one piece and from the begin of a word; -1 without that."""
    start = name.lower.find(word)
    while start >= 0 and name.worth[start] <= 0:
        start = name.lower.find(word, start + 1)
    return start


def _best(name: Name, word: str) -> _Step | None:
    """Return the last letter of the best match, by the best way to each place of each letter."""
    worth = name.worth
    standing: list[_Step] = [(worth[place], place, None) for place in name.places(word[0])]
    for letter in word[1:]:
        following: list[_Step] = []
        best = last = None
        taken = 0
        for place in name.places(letter):
            while taken < len(standing) and standing[taken][1] < place:
                last = standing[taken]
                if best is None or last[0] > best[0]:
                    best = last
                taken += 1
            if best is None or last is None:
                continue
            jumped = best[0] + _SKIPPED + worth[place]
            if last[1] == place - 1 and last[0] + _FOLLOWS >= jumped:
                following.append((last[0] + _FOLLOWS, place, last))
            else:
                following.append((jumped, place, best))
        standing = following
    return max(standing, key=_score_of, default=None)


def _score_of(step: _Step) -> int:
    return step[0]


def _first(name: Name, word: str) -> tuple[int, ...]:
    """Return the first places of the letters in their order; none where one is lacking."""
    found = []
    place = -1
    for letter in word:
        place = name.lower.find(letter, place + 1)
        if place < 0:
            return ()
        found.append(place)
    return tuple(found)
