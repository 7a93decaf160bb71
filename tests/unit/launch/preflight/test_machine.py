"""What the machine lacks for a start: each finding with its severity, its reason and what to do."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from engine_host.engines.vllm.pins import PINS
from engine_host.launch.preflight.machine import (
    BuildNeeds,
    Holder,
    MachineState,
    architecture,
    disk,
    driver,
    ports,
    share,
    shared_memory,
    version,
)
from engine_host.protocol.base import Severity
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.plans import Finding

GIB = 2**30
NEEDS = BuildNeeds("vLLM 0.32.0 (CUDA)", "13.0", "580.65", "7.5")


def gpu(index: int = 0, used: int = 0, sm: str | None = "8.6") -> Gpu:
    return Gpu(
        index=index,
        uuid=f"GPU-{index}",
        name="RTX 3090",
        memory_total=24 * GIB,
        memory_used=used,
        compute_capability=sm,
    )


def one(findings: Iterable[Finding]) -> Finding:
    (finding,) = findings
    assert finding.fix is not None
    assert finding.reason is not None
    return finding


@pytest.mark.parametrize(
    ("installed", "cuda", "old"),
    [
        ("580.95.05", "13.0", False),
        ("590.1", "13.1", False),
        ("580.65.06", None, False),
        ("575.57.08", "12.9", True),
        ("550.54.15", None, True),
        (None, None, False),
    ],
)
def test_a_driver_older_than_the_builds_cuda_is_told(
    installed: str | None, cuda: str | None, old: bool
) -> None:
    found = list(driver(MachineState(driver=installed, cuda=cuda), NEEDS))
    assert bool(found) is old
    if found:
        finding = one(found)
        assert (finding.id, finding.severity) == ("driver_too_old", Severity.ERROR)
        assert finding.reason is Reason.ENGINE_UNUSABLE
        assert str(installed) in finding.message
        assert "580.65" in finding.message


def test_newer_libraries_beside_an_old_driver_are_no_reason_to_refuse() -> None:
    finding = one(driver(MachineState(driver="550.54.15", cuda="12.4", compat=True), NEEDS))
    assert finding.severity is Severity.WARNING


def test_every_cuda_pin_says_what_it_needs() -> None:
    for pin in PINS:
        lines = pin.lock.read_text(encoding="utf-8").splitlines()
        runtime = [line for line in lines if line.startswith("nvidia-cuda-runtime==")]
        if pin.build == "cuda":
            assert runtime[0].startswith(f"nvidia-cuda-runtime=={pin.cuda}.")


@pytest.mark.parametrize(("sm", "old"), [("7.0", True), ("7.5", False), ("12.0", False), (None, False)])
def test_a_gpu_without_kernels_is_told(sm: str | None, old: bool) -> None:
    found = list(architecture([gpu(sm=sm)], NEEDS))
    assert bool(found) is old
    if found:
        finding = one(found)
        assert (finding.id, finding.severity, finding.reason) == (
            "gpu_too_old",
            Severity.ERROR,
            Reason.UNSUPPORTED,
        )


def test_memory_that_others_hold_names_them_and_the_share_that_is_left() -> None:
    holders = (
        Holder(0, 11, "python3", 3 * GIB),
        Holder(0, 12, "Xorg", GIB),
        Holder(1, 13, "elsewhere", 20 * GIB),
    )
    state = MachineState(holders=holders)
    cards = [gpu(0, used=4 * GIB), gpu(1)]
    finding = one(share(cards, 0.9, state))
    assert (finding.id, finding.severity, finding.reason) == (
        "vram_held",
        Severity.ERROR,
        Reason.OUT_OF_MEMORY,
    )
    assert "python3 (pid 11) holds 3.0 GiB, Xorg (pid 12) holds 1.0 GiB." in finding.message
    assert "elsewhere" not in finding.message, "it is on another GPU"
    assert finding.fix is not None
    assert finding.fix.settings == {"gpu_memory": 0.82}
    assert not list(share(cards, 0.82, state)), "what is advised is enough"


def test_many_holders_are_counted_and_unknown_ones_said_so() -> None:
    many = tuple(Holder(0, number, f"p{number}", number * GIB) for number in range(1, 6))
    finding = one(share([gpu(used=15 * GIB)], 0.9, MachineState(holders=many)))
    assert "p5 (pid 5) holds 5.0 GiB, p4" in finding.message
    assert "2 more hold the rest." in finding.message
    finding = one(share([gpu(used=15 * GIB)], 0.9, MachineState()))
    assert "does not say who" in finding.message


def test_a_share_of_no_gpu_is_not_held() -> None:
    assert gpu(used=21 * GIB).memory_free == 3 * GIB
    assert not list(share([], 0.9, MachineState()))


@pytest.mark.parametrize(
    ("free", "severity"),
    [(3 * GIB, None), (GIB, Severity.WARNING), (100 << 20, Severity.ERROR), (None, None)],
)
def test_a_full_disk_is_told_before_vllm_compiles_onto_it(
    free: int | None, severity: Severity | None
) -> None:
    found = list(disk(MachineState(cache_free=free), Path("/cache")))
    assert [finding.severity for finding in found] == ([] if severity is None else [severity])
    if found:
        finding = one(found)
        assert (finding.id, finding.reason) == ("disk_short", Reason.DISK_FULL)
        assert "/cache" in finding.message


def test_shared_memory_matters_between_gpus_alone() -> None:
    small = MachineState(shared=64 << 20)
    finding = one(shared_memory(small, 2))
    assert (finding.id, finding.severity) == ("shared_memory_small", Severity.WARNING)
    assert not list(shared_memory(small, 1))
    assert not list(shared_memory(MachineState(shared=8 * GIB), 2))
    assert not list(shared_memory(MachineState(), 2))


def test_an_endpoint_elsewhere_is_told_and_stops_no_start() -> None:
    moved = Finding(
        id="port_in_use",
        severity=Severity.ERROR,
        reason=Reason.PORT_IN_USE,
        message="Port 8020 is used by x (pid 3); the endpoint is on 8021 instead.",
        fix=Fix(text="End it."),
    )
    finding = one(ports(MachineState(endpoint=(moved,))))
    assert finding.severity is Severity.WARNING
    told = moved.model_copy(update={"severity": Severity.INFO})
    assert one(ports(MachineState(endpoint=(told,)))).severity is Severity.INFO


def test_a_version_that_is_no_pin_is_told() -> None:
    finding = one(version("/opt/venv", "0.30.1", ["0.32.0", "0.26.0"], Fix(text="Install it.")))
    assert (finding.id, finding.severity) == ("version_not_pinned", Severity.WARNING)
    assert "0.32.0 and 0.26.0" in finding.message
    assert not list(version("0.26.0-cuda", "0.26.0", ["0.32.0", "0.26.0"], Fix(text="Install it.")))
