"""The rate of an answer that was timed from outside."""

_SHORTEST_TIMED = 0.02
"""Seconds below which a text came in one go, and its rate would be of the network."""


def decode_rate(tokens: int | None, seconds: float) -> float | None:
    """Tokens per second after the first one; None for what was too short to be timed."""
    if (tokens or 0) < 2 or seconds < _SHORTEST_TIMED:
        return None
    return ((tokens or 0) - 1) / seconds
