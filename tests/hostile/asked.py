"""How much was asked for: `make fuzz` and `make soak` say it in variables, `make test` asks for little.

A test whose size follows from here has the marker `fuzz` or `soak`, and prints a table of what it did.
"""

import os


def fuzz_requests(usual: int) -> int:
    """Return how many requests to send to the endpoint."""
    return int(os.environ.get("SNDR_FUZZ_REQUESTS", usual))


def fuzz_seconds(usual: float) -> float:
    """Return how long one generator of hostile files, lines or events goes on."""
    minutes = os.environ.get("SNDR_FUZZ_MINUTES")
    return float(minutes) * 60 if minutes else usual


def fuzz_seed() -> int:
    """Return the number that all of a run follows from; another one makes another run."""
    return int(os.environ.get("SNDR_FUZZ_SEED", "20261122"))


def soak_seconds(usual: float) -> float:
    """Return how long the soak goes on."""
    minutes = os.environ.get("SNDR_SOAK_MINUTES")
    return float(minutes) * 60 if minutes else usual


def soak_streams(usual: int) -> int:
    """Return how many streams are open at once in a soak."""
    return int(os.environ.get("SNDR_SOAK_STREAMS", usual))
