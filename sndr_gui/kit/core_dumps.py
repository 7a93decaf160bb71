"""A core dump of the window would hold the chats that it shows, which are not written to disk."""

import sys


def refuse_core_dumps() -> None:
    """Have the kernel write no core dump of this process, as the host does for itself and its engines.

    A limit of 1 byte and not of 0: Linux ignores 0 where dumps go to a program, such as systemd's.
    """
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    most = 1 if hard == resource.RLIM_INFINITY else min(1, hard)
    resource.setrlimit(resource.RLIMIT_CORE, (most, hard))
