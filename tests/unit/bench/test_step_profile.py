"""Recorded kernels become shares of a step; recording needs a GPU."""

import pytest

from engine_host.bench.gpu.step_profile import profile_of


def test_kernels_are_summed_and_what_overlaps_is_busy_once() -> None:
    events = [
        ("gemm", 0.0, 600.0),
        ("norm", 500.0, 700.0),
        ("gemm", 1000.0, 1400.0),
        ("inside", 1100.0, 1200.0),
    ]
    found = profile_of(2, 0.002, events)
    assert found.wall_ms == 1.0
    assert found.busy_ms == pytest.approx(0.55)
    assert [(one.name, one.ms_a_step, one.launches_a_step) for one in found.kernels] == [
        ("gemm", 0.5, 1.0),
        ("norm", 0.1, 0.5),
        ("inside", 0.05, 0.5),
    ]
    assert found.lines(1) == [
        "2 steps of 1.000 ms, kernels in 0.550 ms of them",
        "   0.5000 ms     1.0 x  gemm",
    ]


def test_no_steps_are_no_profile() -> None:
    with pytest.raises(ValueError, match="no step"):
        profile_of(0, 1.0, [])
