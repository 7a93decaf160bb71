"""The pace of this machine, now: limits of time hold for a machine of the usual pace."""

import time

_USUAL = 0.045
"""Seconds of processor time that the sum below takes where the limits were set."""


def slower() -> float:
    """Return how many times slower than usual Python computes here; at least 1."""

    def spent() -> float:
        at = time.thread_time()
        sum(number * number for number in range(1_000_000))
        return time.thread_time() - at

    return max(1.0, min(spent() for _ in range(3)) / _USUAL)


def within(spent: float, limit: float) -> bool:
    """Return True if this took less than a limit; the pace, which takes longer to find, is asked last."""
    return spent < limit or spent < limit * slower()
