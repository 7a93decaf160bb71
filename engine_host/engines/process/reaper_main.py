"""Cleans up after a host that was killed: `python -I -S reaper_main.py`, commands on stdin.

Standard library only. Lines are JSON: {"watch": pgid, "started": ticks, "socket": path}, {"forget": pgid},
{"file": path}, {"owner": mark}.
When stdin closes, the host is gone: every watched process group that is still the same one is ended
(SIGTERM, two seconds later SIGKILL; trackers of shared memory last), then whatever still carries the host's
mark in its environment (compilers of a build, which leave their group), and the files are removed. An orderly
host releases all.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import sys
import time

OWNER_VARIABLE = "SNDR_OWNER"


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot (field 22 of /proc/PID/stat); None when unknown."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rsplit(b")", 1)[1].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # One that has ended counts until it is collected: some inits take seconds, and a container may have none.
    return bool(living(group)) or not _pids()


def _end(groups: dict[int, int | None]) -> None:
    """End the groups; one whose leader's number was given to another process since is left alone."""
    ours = [
        group for group, started in groups.items() if started is None or start_ticks(group) in {started, None}
    ]
    for end in (_terminate, kill_but_trackers, _kill):
        for group in ours:
            end(group)
        deadline = time.monotonic() + 2.0
        while any(_alive(group) for group in ours) and time.monotonic() < deadline:
            time.sleep(0.02)


def _terminate(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGTERM)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def kill_but_trackers(group: int) -> None:
    """SIGKILL a process group, but for Python's resource trackers.

    A tracker ends by itself when all that it served are gone, and removes the shared memory that they left.
    """
    if not _pids():
        _kill(group)  # Where there is no /proc, a tracker cannot be told from the others.
    for pid in living(group):
        if b"multiprocessing.resource_tracker" not in _command_line(pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def living(group: int) -> list[int]:
    """The processes of a group that have not ended; one that only waits to be collected has."""
    return [pid for pid in _pids() if _group(pid) == group and _state(pid) not in {b"Z", b"X", b""}]


def _state(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rsplit(b")", 1)[1].split()[0]
    except (OSError, IndexError):
        return b""


def _end_marked(mark: str) -> None:
    """End every process with this owner mark in its environment; none are found without /proc."""
    expected = f"{OWNER_VARIABLE}={mark}".encode()
    # A compiler driver may start another process between two looks.
    for _ in range(20):
        found = [pid for pid in _pids() if pid != os.getpid() and expected in _environment(pid)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def _command_line(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def _lock(descriptor: int) -> None:
    """Take a lock, waiting a second: the kernel closes our pipe before it lets go of a dead host's locks.

    Raises BlockingIOError when a living process holds it.
    """
    deadline = time.monotonic() + 1.0
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _remove(paths: list[str]) -> None:
    """Remove the files, unless a new host holds one of the locks among them: then all of them are its own."""
    held: list[int] = []
    try:
        for path in paths:
            if path.endswith(".lock"):
                held.append(os.open(path, os.O_RDWR))
                _lock(held[-1])
    except BlockingIOError:
        paths = []
    except OSError:
        pass  # The lock is gone already; what lies beside it is as dead.
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)
    for descriptor in held:
        os.close(descriptor)


def main() -> None:
    """Read commands until stdin closes, then clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: dict[int, int | None] = {}
    sockets: dict[int, str] = {}
    files: list[str] = []
    mark = ""
    for line in sys.stdin:
        try:
            command = json.loads(line)
        except ValueError:
            continue  # The host died in the middle of a line.
        if "watch" in command:
            groups[command["watch"]] = command["started"]
            sockets[command["watch"]] = command["socket"]
        elif "forget" in command:
            groups.pop(command["forget"], None)
            sockets.pop(command["forget"], None)
        elif "file" in command:
            files.append(command["file"])
        elif "owner" in command:
            mark = command["owner"]
        elif "release" in command:
            mark = ""
            groups.clear()
            sockets.clear()
            files.clear()
    _end(groups)
    if mark:
        _end_marked(mark)
    for path in sockets.values():
        with contextlib.suppress(OSError):
            os.unlink(path)
        # What the engine's processes left in the temporary folder beside it.
        shutil.rmtree(os.path.splitext(path)[0] + ".tmp", ignore_errors=True)
    _remove(files)


if __name__ == "__main__":
    main()
