"""Why no GPU is listed, by what was looked at: NVML's code, /proc, /dev and the PCI bus; never by prose."""

from dataclasses import dataclass
from typing import Any

from engine_host.core.findings.table import finding
from engine_host.protocol.host import GpuAbsence
from engine_host.protocol.launch.plans import Finding

# The codes of nvml.h; nvidia-smi ends with them too.
_NO_PERMISSION, _NOT_FOUND, _NOT_LOADED, _GPU_LOST, _VERSIONS = 4, 6, 9, 15, 18
NO_LIBRARY = 12
"""The code of a driver library, or of a program that needs it, that is not found."""
NVIDIA = "10de"
_MAKERS = {"1002": "AMD", "8086": "Intel"}
"""The makers of other GPUs that compute; a server's own graphics for its console are none."""
_KEEPS = frozenset({"vfio-pci", "pci-stub", "xen-pciback"})


@dataclass(frozen=True)
class PciCard:
    """A display controller on the PCI bus: its address, the ids of its maker and model, what drives it."""

    address: str
    maker: str
    model: str = ""
    driver: str = ""


@dataclass(frozen=True)
class Surroundings:
    """The places around a driver as they were seen; `cards` is None where no PCI bus is shown.

    `module` is the version of the loaded kernel module, `library` that of the installed library; `closed` are
    the device files that may not be opened, `group` theirs; `container` is what shows that this is one.
    """

    system: str = "Linux"
    user: str = ""
    module: str | None = None
    library: str | None = None
    nodes: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    group: str = ""
    cards: tuple[PciCard, ...] | None = None
    container: str = ""
    on_windows: bool = False


def explained(code: int | None, call: str, seen: Surroundings) -> tuple[GpuAbsence, Finding]:
    """Return why no GPU is listed.

    `code` is NVML's, 0 where it answers and lists none, None where it is not NVML that failed; `call` is the
    call that failed, in words.
    """
    ours = tuple(card for card in seen.cards or () if card.maker == NVIDIA)
    shown = _named(ours)
    values: dict[str, Any] = {
        "module": seen.module,
        "library": seen.library,
        "user": seen.user,
        "call": call,
        "cards": shown,
    }
    values |= {"container": seen.container, "paths": " ".join(seen.closed) or None, "group": seen.group}
    values |= {"driver": ", ".join(sorted({card.driver for card in ours if card.driver}))}
    values["shown_by"] = "/proc/driver/nvidia" if seen.module else shown
    kind, key = _kind_of(code, seen, ours)
    if kind is GpuAbsence.OTHER_MAKER:
        values["cards"] = _named(_others(seen))
    evidence = {"code": code, "nodes": list(seen.nodes), "system": seen.system}
    return kind, finding(key, evidence=evidence, **values)


def _kind_of(code: int | None, seen: Surroundings, ours: tuple[PciCard, ...]) -> tuple[GpuAbsence, str]:
    if seen.system == "Darwin":
        return GpuAbsence.APPLE, "gpu_absent/apple"
    if code == _VERSIONS:
        key = "gpu_absent/versions_differ/container" if seen.container else "gpu_absent/versions_differ"
        return GpuAbsence.VERSIONS_DIFFER, key
    if code == _GPU_LOST:
        return GpuAbsence.GPU_LOST, "gpu_absent/gpu_lost"
    if code == _NO_PERMISSION or (seen.closed and code not in (0, NO_LIBRARY)):
        return GpuAbsence.NO_PERMISSION, _closed_to(seen)
    drivers = {card.driver for card in ours if card.driver}
    if drivers and drivers <= _KEEPS:
        return GpuAbsence.OTHER_DRIVER, "gpu_absent/other_driver/kept"
    if code in _NOT_THERE:
        if seen.container and (seen.module or ours):
            return GpuAbsence.IN_CONTAINER, "gpu_absent/in_container"
        return _NOT_THERE[code](seen, ours)
    return GpuAbsence.DRIVER_ERROR, "gpu_absent/driver_error"


def _closed_to(seen: Surroundings) -> str:
    if seen.container:
        return "gpu_absent/no_permission/container"
    if not seen.closed:
        return "gpu_absent/no_permission/driver"
    return "gpu_absent/no_permission" if seen.group not in ("", "root") else "gpu_absent/no_permission/files"


def _without_library(seen: Surroundings, ours: tuple[PciCard, ...]) -> tuple[GpuAbsence, str]:
    if seen.module:
        return GpuAbsence.NO_DRIVER, "gpu_absent/no_driver/library"
    if ours:
        return GpuAbsence.NO_DRIVER, "gpu_absent/no_driver"
    if _others(seen):
        return GpuAbsence.OTHER_MAKER, "gpu_absent/other_maker"
    if seen.on_windows:
        return GpuAbsence.NO_DRIVER, "gpu_absent/no_driver/wsl"
    key = "gpu_absent/no_device/unseen" if seen.cards is None else "gpu_absent/no_device"
    return GpuAbsence.NO_DEVICE, key


def _without_module(seen: Surroundings, ours: tuple[PciCard, ...]) -> tuple[GpuAbsence, str]:
    if seen.module:
        nodes = any(node[-1:].isdecimal() for node in seen.nodes)
        key = "gpu_absent/driver_error" if nodes else "gpu_absent/no_device_node"
        return (GpuAbsence.DRIVER_ERROR if nodes else GpuAbsence.NO_NODE), key
    if any(card.driver not in ("", "nvidia") for card in ours):
        return GpuAbsence.OTHER_DRIVER, "gpu_absent/other_driver"
    if ours:
        return GpuAbsence.NOT_LOADED, "gpu_absent/not_loaded"
    return GpuAbsence.NO_DEVICE, "gpu_absent/no_device/driver"


def _without_gpus(_seen: Surroundings, _ours: tuple[PciCard, ...]) -> tuple[GpuAbsence, str]:
    return GpuAbsence.LISTS_NONE, "gpu_absent/lists_none"


_NOT_THERE = {
    0: _without_gpus,
    _NOT_FOUND: _without_gpus,
    _NOT_LOADED: _without_module,
    NO_LIBRARY: _without_library,
}


def module_version(line: str) -> str | None:
    """Return the version in the first line of /proc/driver/nvidia/version: its first word like a number."""
    return next((word for word in line.split() if "." in word and word.replace(".", "").isdecimal()), None)


def without_reader() -> tuple[GpuAbsence, Finding]:
    """Return that the package is missing that asks the driver."""
    return GpuAbsence.NO_READER, finding("gpu_absent/no_reader")


def _others(seen: Surroundings) -> tuple[PciCard, ...]:
    return tuple(card for card in seen.cards or () if card.maker in _MAKERS)


def _named(cards: tuple[PciCard, ...]) -> str:
    return ", ".join(
        f"{_MAKERS.get(card.maker, 'NVIDIA')} {card.maker}:{card.model} at {card.address}" for card in cards
    )
