"""The reason for which no GPU is listed, by NVML's code and what was seen; no prose is read."""

import pytest

from engine_host.core.diagnosis.gpu_absence import PciCard, Surroundings, explained, module_version
from engine_host.protocol.host import ABSENCE_WORDS, GpuAbsence

CARD = PciCard("0000:01:00.0", "10de", "2684", "nvidia")
BARE = PciCard("0000:01:00.0", "10de", "2684")
NODES = ("/dev/nvidia0", "/dev/nvidiactl")
CONTAINER = "/.dockerenv"
MODULE = "570.86.10"
CASES = [
    (12, Surroundings(cards=()), GpuAbsence.NO_DEVICE, "none is on the PCI bus"),
    (12, Surroundings(cards=None), GpuAbsence.NO_DEVICE, "no PCI bus is shown"),
    (12, Surroundings(cards=(PciCard("a", "1a03", "2000"),)), GpuAbsence.NO_DEVICE, "none is on"),
    (12, Surroundings(cards=(BARE,)), GpuAbsence.NO_DRIVER, "NVIDIA 10de:2684 at 0000:01:00.0"),
    (12, Surroundings(module=MODULE, cards=(CARD,)), GpuAbsence.NO_DRIVER, f"module {MODULE} is loaded"),
    (12, Surroundings(cards=None, on_windows=True), GpuAbsence.NO_DRIVER, "Linux on Windows"),
    (12, Surroundings(cards=(PciCard("b", "1002", "744c"),)), GpuAbsence.OTHER_MAKER, "AMD 1002:744c at b"),
    (12, Surroundings(cards=(PciCard("b", "8086", "56a0"),)), GpuAbsence.OTHER_MAKER, "Intel 8086:56a0 at b"),
    (12, Surroundings(cards=(BARE,), container=CONTAINER), GpuAbsence.IN_CONTAINER, CONTAINER),
    (12, Surroundings(module=MODULE, container=CONTAINER), GpuAbsence.IN_CONTAINER, "/proc/driver/nvidia"),
    (12, Surroundings(cards=(), container=CONTAINER), GpuAbsence.NO_DEVICE, "none is on the PCI bus"),
    (12, Surroundings(system="Darwin"), GpuAbsence.APPLE, "Apple's GPU"),
    (9, Surroundings(cards=(BARE,), library=MODULE), GpuAbsence.NOT_LOADED, "is not loaded"),
    (9, Surroundings(cards=(), library=MODULE), GpuAbsence.NO_DEVICE, "driver is installed"),
    (
        9,
        Surroundings(cards=(PciCard("c", "10de", "1", "nouveau"),), library=MODULE),
        GpuAbsence.OTHER_DRIVER,
        "driven by nouveau",
    ),
    (12, Surroundings(cards=(PciCard("c", "10de", "1", "vfio-pci"),)), GpuAbsence.OTHER_DRIVER, "vfio-pci"),
    (9, Surroundings(module=MODULE, cards=(CARD,)), GpuAbsence.NO_NODE, "no device file"),
    (
        9,
        Surroundings(module=MODULE, cards=(CARD,), nodes=NODES),
        GpuAbsence.DRIVER_ERROR,
        "does not answer: nvmlInit",
    ),
    (
        18,
        Surroundings(module=MODULE, library="575.1", cards=(CARD,), nodes=NODES),
        GpuAbsence.VERSIONS_DIFFER,
        f"library 575.1 and the loaded kernel module {MODULE} differ in version",
    ),
    (18, Surroundings(cards=(CARD,), container=CONTAINER), GpuAbsence.VERSIONS_DIFFER, "in this container"),
    (4, Surroundings(cards=(CARD,), nodes=NODES, user="me"), GpuAbsence.NO_PERMISSION, "refuses me"),
    (
        999,
        Surroundings(cards=(CARD,), nodes=NODES, closed=NODES, group="video", user="me"),
        GpuAbsence.NO_PERMISSION,
        "me may not open the device files of NVIDIA's driver: /dev/nvidia0 /dev/nvidiactl",
    ),
    (
        999,
        Surroundings(cards=(CARD,), nodes=NODES, closed=NODES[1:], group="root", container=CONTAINER),
        GpuAbsence.NO_PERMISSION,
        "This container",
    ),
    (15, Surroundings(cards=(CARD,)), GpuAbsence.GPU_LOST, "fallen off"),
    (0, Surroundings(module=MODULE, cards=(CARD,), nodes=NODES), GpuAbsence.LISTS_NONE, "lists no GPU"),
    (0, Surroundings(module=MODULE, container=CONTAINER), GpuAbsence.IN_CONTAINER, "runs without it"),
    (999, Surroundings(cards=(CARD,), nodes=NODES), GpuAbsence.DRIVER_ERROR, "nvmlInit: broken"),
    (None, Surroundings(cards=(CARD,), nodes=NODES), GpuAbsence.DRIVER_ERROR, "nvmlInit: broken"),
]


@pytest.mark.parametrize(("code", "seen", "kind", "says"), CASES)
def test_the_reason_and_its_evidence(
    code: int | None, seen: Surroundings, kind: GpuAbsence, says: str
) -> None:
    found, told = explained(code, "nvmlInit: broken", seen)
    assert found is kind
    assert says in told.message
    assert told.fix is not None, "each has a next action"
    assert "{" not in told.message + told.fix.text + (told.fix.command or "")
    assert told.evidence["code"] == code


def test_the_next_action_of_a_closed_device_file_goes_by_its_group() -> None:
    def command(group: str) -> str | None:
        seen = Surroundings(cards=(CARD,), nodes=NODES, closed=NODES, group=group, user="me")
        fix = explained(999, "", seen)[1].fix
        return fix.command if fix is not None else None

    assert command("video") == "sudo usermod -aG video me"
    assert command("root") == "sudo chmod a+rw /dev/nvidia0 /dev/nvidiactl"


def test_prose_of_the_driver_changes_nothing() -> None:
    seen = Surroundings(cards=(CARD,), nodes=NODES)
    lying = "nvmlInit: Driver/library version mismatch, Insufficient Permissions"
    assert explained(999, lying, seen)[0] is GpuAbsence.DRIVER_ERROR


def test_every_reason_has_its_words() -> None:
    assert ABSENCE_WORDS.keys() == set(GpuAbsence)


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  Tue Jan 28 2025", "570.86.10"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build", "580.95.05"),
        ("", None),
    ],
)
def test_the_version_of_the_loaded_module(line: str, version: str | None) -> None:
    assert module_version(line) == version
