"""Why another machine lists no GPU: nvidia-smi's exit code, and lines of the program that reads facts."""

import pytest

from engine_host.core.diagnosis.gpu_absence import PciCard
from engine_host.remote.facts.parts import Part
from engine_host.remote.facts.surroundings import no_gpu_of, seen_in

CARD = "bus\ncard 0000:01:00.0 0x10de 0x2684 nvidia\nmodule NVRM version: Kernel Module  570.86.10  Tue\n"


def why(around: str, code: int | None = None, rows: str = "") -> str | None:
    parts = {"surroundings": Part(around, 0)}
    if code is not None:
        parts["gpus"] = Part(rows, code)
    told = no_gpu_of(parts)
    return None if told is None else told.message


def test_the_code_of_nvidia_smi_and_what_was_seen_tell() -> None:
    assert why(CARD, 0, "0, GPU-1, A") is None
    assert no_gpu_of({}) is None
    assert "fallen off its bus" in (why(CARD, 15) or "")
    assert "library 575.5 and the loaded kernel module 570.86.10" in (
        why(f"{CARD}library /usr/lib/libnvidia-ml.so.575.5", 18) or ""
    )
    assert "lists no GPU" in (why(CARD, 6, "No devices were found") or "")
    assert "none is on the PCI bus" in (why("bus\n") or "")
    assert "driver is not installed" in (why("bus\ncard a 0x10de 0x2684\n") or "")
    assert "AMD 1002:744c at a" in (why("bus\ncard a 0x1002 0x744c amdgpu\n") or "")
    assert "Join" not in (why(CARD, 124) or "Join")


def test_lines_are_read_as_what_they_are() -> None:
    seen = seen_in(
        f"{CARD}user me\nnode /dev/nvidiactl\nclosed video /dev/nvidiactl\ncontainer /.dockerenv\n"
    )
    assert seen.cards == (PciCard("0000:01:00.0", "10de", "2684", "nvidia"),)
    assert (seen.user, seen.closed, seen.group) == ("me", ("/dev/nvidiactl",), "video")
    assert seen.container == "/.dockerenv"


@pytest.mark.parametrize(
    "hostile", ["", "\n\n", "card\ncard a\nclosed\nnode\nuser", "\0" * 1000, "bus " * 9999]
)
def test_hostile_lines_say_nothing(hostile: str) -> None:
    assert seen_in(hostile).closed == ()
