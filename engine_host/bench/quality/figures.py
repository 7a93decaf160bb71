"""The arithmetic: perplexity, divergence and agreement from what an engine says of its next tokens."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

# Sums of probabilities are only as exact as the numbers of an answer.
_SMALLEST = 1e-9


@dataclass(frozen=True, slots=True)
class Position:
    """The prediction of one token: natural logarithms by token, and the token that came."""

    token: int
    listed: Mapping[int, float]

    @property
    def best(self) -> int:
        """The most likely token."""
        return max(self.listed, key=lambda token: self.listed[token])

    @property
    def is_listed(self) -> bool:
        """True if the token that came is one of the listed."""
        return self.token in self.listed

    def logprob(self, vocabulary: int) -> float:
        """The logarithm of the probability of the token that came.

        One that is not listed gets what the listed leave, spread evenly over all others.
        """
        if self.is_listed:
            return self.listed[self.token]
        left = max(_SMALLEST, 1.0 - sum(map(math.exp, self.listed.values())))
        return math.log(left / max(1, vocabulary - len(self.listed)))


def perplexity(positions: Sequence[Position], vocabulary: int) -> float:
    """The exponential of the mean negative logarithm."""
    return math.exp(-sum(one.logprob(vocabulary) for one in positions) / len(positions))


def divergence(reference: Position, other: Position) -> float:
    """KL(reference, other) in nats over the tokens that both list, with all others as one outcome.

    Putting outcomes together never makes it larger (data processing), so it is a lower bound.
    """
    both = reference.listed.keys() & other.listed.keys()
    found, left, other_left = 0.0, 1.0, 1.0
    for token in both:
        logarithm, probability = reference.listed[token], math.exp(reference.listed[token])
        found += probability * (logarithm - other.listed[token])
        left -= probability
        other_left -= math.exp(other.listed[token])
    if left > _SMALLEST:
        found += left * math.log(left / max(other_left, _SMALLEST))
    return max(0.0, found)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that so large a share does not exceed; of the sorted ones, the nearest above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def agreed(one: Sequence[int], other: Sequence[int]) -> int:
    """The length of the beginning that two answers share."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
