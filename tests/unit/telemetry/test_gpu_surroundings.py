"""The places that are looked at for a driver, below a folder that is laid out like a machine's root."""

import os
from pathlib import Path

import pytest

from engine_host.core.diagnosis.gpu_absence import PciCard
from engine_host.telemetry.gpu_surroundings import look_around


def put(root: Path, name: str, content: str = "") -> Path:
    """Write a file below the root."""
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")
    return file


def card(root: Path, address: str, kind: str, maker: str, driver: str = "") -> None:
    """Put a device on the bus."""
    folder = f"sys/bus/pci/devices/{address}"
    for name, value in (("class", kind), ("vendor", maker), ("device", "0x2684")):
        put(root, f"{folder}/{name}", f"{value}\n")
    if driver:
        (root / "drivers" / driver).mkdir(parents=True)
        (root / folder / "driver").symlink_to(root / "drivers" / driver)


def test_nothing_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("container", raising=False)
    seen = look_around(tmp_path)
    assert (seen.cards, seen.nodes, seen.module, seen.library, seen.container) == (None, (), None, None, "")
    assert seen.system
    assert seen.user


def test_what_a_machine_with_a_driver_shows(tmp_path: Path) -> None:
    card(tmp_path, "0000:01:00.0", "0x030000", "0x10de", "nvidia")
    card(tmp_path, "0000:02:00.0", "0x020000", "0x8086")
    version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  Tue\nGCC version: 12.3.0\n"
    put(tmp_path, "proc/driver/nvidia/version", version)
    library = put(tmp_path, "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.575.51.02")
    (library.parent / "libnvidia-ml.so.1").symlink_to(library.name)
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        put(tmp_path, f"dev/{name}")
    put(tmp_path, ".dockerenv")
    seen = look_around(tmp_path)
    assert seen.cards == (PciCard("0000:01:00.0", "10de", "2684", "nvidia"),)
    assert (seen.module, seen.library) == ("570.86.10", "575.51.02")
    assert (seen.nodes, seen.closed) == (("/dev/nvidia0", "/dev/nvidiactl"), ())
    assert seen.container == "/.dockerenv"


def test_a_file_that_may_not_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "dev/nvidia0")
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.R_OK | os.W_OK)
    seen = look_around(tmp_path)
    assert seen.closed == ("/dev/nvidia0",)
    assert seen.group == (tmp_path / "dev/nvidia0").group()


def test_a_container_is_refused_what_the_file_permits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = put(tmp_path, "dev/nvidiactl")

    def refuse(path: object, *_rest: object) -> int:
        assert path == node
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "open", refuse)
    seen = look_around(tmp_path)
    assert seen.closed == ("/dev/nvidiactl",)
