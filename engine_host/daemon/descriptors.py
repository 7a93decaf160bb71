"""File descriptors: as many as the system allows, and some kept back from the endpoint."""

import sys

_MOST = 65_536
_KEPT = 256
"""For the control socket, engines, the database and logs, whatever the endpoint's clients hold open."""


def raise_limit() -> int:
    """Raise the soft limit of open files as far as it goes, and return it."""
    if sys.platform == "win32":
        return 2048
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft


def for_clients(limit: int) -> int:
    """Return how many connections the endpoint may hold; each may need another one to its engine."""
    return max(16, (limit - _KEPT) // 2)
