"""Prompts of token numbers, always the same, and the answers of two starts compared token by token."""

import random
from collections.abc import Sequence
from itertools import zip_longest

_KNOWN = (1, 2, 3, 5, 17, 40, 64, 65, 90, 150)


def prompts(count: int = 40, vocabulary: int = 512) -> list[list[int]]:
    """Prompts of 1 to 2500 token numbers from 3 to the size of the vocabulary."""
    draw = random.Random(1)
    sizes = [*_KNOWN, *(draw.randrange(20, 2500) for _ in range(count - len(_KNOWN)))]
    return [[draw.randrange(3, vocabulary) for _ in range(size)] for size in sizes]


def differing(one: Sequence[Sequence[int]], other: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """The numbers of the answers that differ, each with the place of its first other token."""
    found = []
    for index, (first, second) in enumerate(zip_longest(one, other, fillvalue=())):
        pairs = enumerate(zip_longest(first, second))
        place = next((place for place, (left, right) in pairs if left != right), None)
        if place is not None:
            found.append((index, place))
    return found
