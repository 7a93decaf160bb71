"""The places of this machine that show why a driver lists no GPU, as they are now."""

import errno
import getpass
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from engine_host.core.diagnosis.gpu_absence import PciCard, Surroundings, module_version

_DISPLAY = "0x03"
"""How the class of a display controller begins; 0x0302 is one without a screen."""
_MOST, _LONGEST = 64, 100
_LIBRARY = "libnvidia-ml.so.1"
_LIBRARIES = (
    "usr/lib/*-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "lib64",
    "usr/lib/wsl/lib",
    "usr/local/nvidia/lib64",
)
_VARIABLE = "container"
_MARKS = (".dockerenv", "run/.containerenv")


def look_around(root: Path = Path("/")) -> Surroundings:
    """Return what the files below `root` show; what cannot be read shows nothing. Takes milliseconds."""
    nodes = _nodes(root)
    closed = [node for node in nodes if not _opens(node)]
    return Surroundings(
        system=platform.system(),
        user=_user(),
        module=_module(root),
        library=_library(root),
        nodes=tuple(f"/{node.relative_to(root)}" for node in nodes),
        closed=tuple(f"/{node.relative_to(root)}" for node in closed),
        group=_group(closed[0]) if closed else "",
        cards=_cards(root / "sys/bus/pci/devices"),
        container=next((f"/{mark}" for mark in _MARKS if (root / mark).exists()), "") or _named_container(),
        on_windows=(root / "dev/dxg").exists(),
    )


def _module(root: Path) -> str | None:
    return module_version(next(iter(_read(root / "proc/driver/nvidia/version").splitlines()), ""))


def _library(root: Path) -> str | None:
    """The version in the name of the file that the library's link leads to."""
    for folder in _LIBRARIES:
        for link in root.glob(f"{folder}/{_LIBRARY}"):
            version = link.resolve().name.partition(".so.")[2]
            if "." in version:
                return version[:_LONGEST]
    return None


def _nodes(root: Path) -> list[Path]:
    found = sorted((root / "dev").glob("nvidia*"))[:_MOST]
    return [node for node in found if node.name == "nvidiactl" or node.name[len("nvidia") :].isdecimal()]


def _opens(node: Path) -> bool:
    """Tell whether this user may open a device file; a container may be refused what the file permits.

    A GPU itself is not opened, which could wake it up: the file that controls the driver tells the same.
    """
    if node.name != "nvidiactl":
        return os.access(node, os.R_OK | os.W_OK)
    try:
        os.close(os.open(node, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EPERM)
    return True


def _cards(bus: Path) -> tuple[PciCard, ...] | None:
    try:
        devices = sorted(bus.iterdir())
    except OSError:
        return None
    return tuple(_displays(devices))[:_MOST] if devices else None


def _displays(devices: list[Path]) -> Iterator[PciCard]:
    for device in devices:
        if _read(device / "class").startswith(_DISPLAY):
            driver = device / "driver"
            yield PciCard(
                address=device.name[:_LONGEST],
                maker=_read(device / "vendor").strip().removeprefix("0x")[:4],
                model=_read(device / "device").strip().removeprefix("0x")[:4],
                driver=driver.resolve().name[:_LONGEST] if driver.exists() else "",
            )


def _read(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as text:
            return text.read(4096)
    except OSError:
        return ""


def _group(node: Path) -> str:
    try:
        return node.group()
    except (OSError, KeyError):
        return ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())


def _named_container() -> str:
    """The word by which systemd, LXC and Podman name a container to its processes."""
    return f"container={word[:_LONGEST]}" if (word := os.environ.get(_VARIABLE)) else ""
