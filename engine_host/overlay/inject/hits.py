"""Count the runs of patched code in this process; read by the probe."""

COUNTS: dict[str, int] = {}


def count(patch: str) -> None:
    """Count one execution of a patch's code."""
    COUNTS[patch] = COUNTS.get(patch, 0) + 1
