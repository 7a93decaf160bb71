"""The machine's memory and processor, and the memory of a process with its children."""

import contextlib
import platform
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from engine_host.telemetry.memory_limit import memory

_LONGEST_NAME = 64


@dataclass(frozen=True)
class MachineFacts:
    """The properties of the machine that do not change: names and counts; `ram_total` in bytes."""

    os: str
    cpu_name: str
    cpu_cores: int
    cpu_threads: int
    ram_total: int


@dataclass(frozen=True)
class MachineReading:
    """Memory in bytes, used = total - available; the others since the last reading, None at first.

    `cpu_share` is 0 to 1, the rates are bytes a second of all disks and of all networks but loopback.
    """

    ram_total: int
    ram_used: int
    cpu_share: float | None
    disk_read: float | None = None
    disk_written: float | None = None
    network_received: float | None = None
    network_sent: float | None = None


@dataclass(frozen=True)
class ProcessMemory:
    """Resident bytes of a process and of all below it.

    `of_files` of them are pages of files, such as weights that are mapped: the system counts these as free,
    and reads them again from the disk when it gave them away.
    """

    resident: int
    of_files: int = 0


class MachineMonitor:
    """Reads this machine; every call takes about a millisecond. Source: psutil, control groups."""

    def __init__(self) -> None:
        self._times: tuple[float, float] | None = None
        self._moved: tuple[float, tuple[int, int, int, int]] | None = None
        self.facts = MachineFacts(
            os_name(),
            cpu_name(),
            psutil.cpu_count(logical=False) or psutil.cpu_count() or 1,
            psutil.cpu_count() or 1,
            memory().total,
        )

    def read(self) -> MachineReading:
        """Memory and processor now."""
        now = memory()
        return MachineReading(now.total, now.total - now.available, self._cpu_share(), *self._rates())

    def _rates(self) -> tuple[float | None, ...]:
        """Bytes a second read, written, received and sent since the last reading."""
        moved, now = _moved(), time.monotonic()
        before, self._moved = self._moved, None if moved is None else (now, moved)
        if moved is None or before is None or now <= before[0]:
            return (None,) * 4
        # A disk or a network that went takes its counters with it.
        return tuple(
            (new - old) / (now - before[0]) if new >= old else None
            for new, old in zip(moved, before[1], strict=True)
        )

    def _cpu_share(self) -> float | None:
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        # A guest's time is counted in user time already.
        guest = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        total = sum(times) - guest
        before, self._times = self._times, (idle, total)
        if before is None or total <= before[1]:
            return None
        return min(1.0, max(0.0, 1.0 - (idle - before[0]) / (total - before[1])))


def _moved() -> tuple[int, int, int, int] | None:
    """Bytes read, written, received and sent since the system started; None where it does not tell."""
    try:
        disks = psutil.disk_io_counters()
        networks = psutil.net_io_counters(pernic=True)
    except (OSError, RuntimeError):
        return None
    outside = [one for name, one in networks.items() if not name.startswith("lo")]
    return (
        disks.read_bytes if disks else 0,
        disks.write_bytes if disks else 0,
        sum(one.bytes_recv for one in outside),
        sum(one.bytes_sent for one in outside),
    )


def memory_now() -> tuple[int, int]:
    """Bytes of RAM, and those of them that are in use."""
    now = memory()
    return now.total, now.total - now.available


def free_memory() -> int:
    """Bytes that programs can still have without swapping."""
    return memory().available


def process_memory(pid: int) -> ProcessMemory | None:
    """Memory of a process and of all below it; None when it cannot be read. Source: psutil, /proc."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.Error:
        return None
    resident = of_files = 0
    for member in family:
        with contextlib.suppress(psutil.Error):
            resident += member.memory_info().rss
            # What a family maps, most often the same libraries, is in memory once.
            of_files = max(of_files, _of_files(member.pid))
    return ProcessMemory(resident, min(of_files, resident)) if resident else None


def _of_files(pid: int) -> int:
    """Resident bytes of mapped files; 0 where the system does not tell."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return 0
    for line in lines:
        name, _, value = line.partition(":")
        if name == "RssFile" and (kib := value.split()[:1]) and kib[0].isdigit():
            return int(kib[0]) * 1024
    return 0


def process_tree(pid: int) -> tuple[int, ...]:
    """The ids of a process and of all below it; of one that is gone, its own."""
    try:
        return (pid, *(child.pid for child in psutil.Process(pid).children(recursive=True)))
    except psutil.Error:
        return (pid,)


def process_name(pid: int) -> str:
    """The name of a process; of one that is gone or hidden, that it is not known."""
    try:
        name = str(psutil.Process(pid).name())
    except psutil.Error:
        return "an unknown process"
    # A process gives itself any name, in any bytes.
    return name.encode("utf-8", "replace").decode("utf-8")[:_LONGEST_NAME]


def free_disk(folder: Path) -> int | None:
    """Bytes that can be written where a folder is, or will be; None where the system does not tell."""
    for place in (folder, *folder.parents):
        try:
            return shutil.disk_usage(place).free
        except FileNotFoundError:
            continue
        except OSError:
            return None
    return None


def shared_memory_size() -> int | None:
    """Bytes of shared memory that processes can have together; None where it is not a file system."""
    try:
        return shutil.disk_usage("/dev/shm").total
    except OSError:
        return None


def has_cuda_compat() -> bool:
    """Return True if NVIDIA's libraries for newer CUDA than the driver's are installed (cuda-compat)."""
    return any(Path("/usr/local").glob("cuda*/compat/libcuda.so*"))


def cpu_name() -> str:
    """The processor's name as its maker writes it, or the architecture's."""
    if sys.platform == "linux":
        try:
            lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip() in {"model name", "Model", "Hardware"} and value.strip():
                return value.strip()
    return platform.processor() or platform.machine() or "unknown processor"


def os_name() -> str:
    """The operating system's name and version as people know it."""
    if sys.platform == "linux":
        try:
            release = platform.freedesktop_os_release()
        except OSError:
            release = {}
        name = release.get("PRETTY_NAME")
        if name:
            return f"{name}, Linux {platform.release()}"
    return f"{platform.system()} {platform.release()}"
