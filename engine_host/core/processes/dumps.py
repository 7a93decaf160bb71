"""A core dump holds what a process had in memory, prompts and answers too, which are not written to disk."""

import sys


def refuse_core_dumps() -> None:
    """Have the kernel write no core dump of this process and of what it starts.

    A limit of 1 byte and not of 0: Linux ignores 0 where dumps go to a program, such as systemd's.
    """
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    most = 1 if hard == resource.RLIM_INFINITY else min(1, hard)
    resource.setrlimit(resource.RLIMIT_CORE, (most, hard))
