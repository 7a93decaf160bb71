"""The memory that a container or a service may have, where that is less than the machine's.

Source: Linux, admin-guide/cgroup-v2 and cgroup-v1/memory. Available is what the limit leaves beside the
group's memory without `inactive_file`, which the kernel takes back first, as Kubernetes counts it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import psutil

_ROOT = Path("/")


@dataclass(frozen=True)
class Memory:
    """Bytes of memory, and those that programs can still have without swapping."""

    total: int
    available: int


def memory(root: Path = _ROOT) -> Memory:
    """Return this machine's memory, or what this process and its children may have of it."""
    whole = psutil.virtual_memory()
    total, available = int(whole.total), int(whole.available)
    for limit, used in _limits(root):
        # Groups without a limit say one that no machine has.
        if limit < whole.total:
            total = min(total, limit)
            available = min(available, max(0, limit - used))
    return Memory(total, available)


def _limits(root: Path) -> Iterator[tuple[int, int]]:
    """Yield the limit of this process's group and of each around it, with what the group uses of it."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0" and not controllers:
            for mount in ("sys/fs/cgroup", "sys/fs/cgroup/unified"):
                yield from _of_groups(root / mount, path, "memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            yield from _of_groups(root / "sys/fs/cgroup/memory", path, *names)


def _of_groups(mount: Path, path: str, limit: str, usage: str, reclaimed: str) -> Iterator[tuple[int, int]]:
    group = PurePosixPath(path.lstrip("/"))
    # A container that sees its own groups alone may be told a path of the machine's; its mount is its group.
    for folder in dict.fromkeys((mount / group, *(mount / one for one in group.parents), mount)):
        most, used = _number(folder / limit), _number(folder / usage)
        if most is not None and used is not None:
            yield most, max(0, used - _of_statistics(folder / "memory.stat", reclaimed))


def _number(file: Path) -> int | None:
    try:
        text = file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
    return int(text) if text.isascii() and text.isdigit() else None


def _of_statistics(file: Path, name: str) -> int:
    try:
        lines = file.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0
    found = (line.split() for line in lines)
    return next(
        (int(words[1]) for words in found if len(words) == 2 and words[0] == name and words[1].isdigit()), 0
    )
