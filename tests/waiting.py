"""The pause between two looks at something that another process changes."""

import time

_SHORTEST, _LONGEST = 0.02, 0.25


def pause(since: float) -> None:
    """Sleep a twentieth of the time that is waited already, since this reading of `time.monotonic`.

    Each look costs both processes some milliseconds: fifty a second through the start of an engine were a
    seventh of all processor time that a start of vLLM took.
    """
    time.sleep(min(_LONGEST, max(_SHORTEST, (time.monotonic() - since) / 20)))
