"""Waiting for something that another process changes."""

import time
from collections.abc import Callable

_SHORTEST, _LONGEST = 0.02, 0.25


def pause(since: float) -> None:
    """Sleep a twentieth of the time that is waited already, since this reading of `time.monotonic`.

    Each look costs both processes some milliseconds: fifty a second through the start of an engine were a
    seventh of all processor time that a start of vLLM took.
    """
    time.sleep(min(_LONGEST, max(_SHORTEST, (time.monotonic() - since) / 20)))


def wait_until(check: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Whether something becomes true in time."""
    began = time.monotonic()
    while not check():
        if time.monotonic() > began + seconds:
            return False
        pause(began)
    return True
