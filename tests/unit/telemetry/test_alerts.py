"""Alerts begin when a value stays beyond its threshold, and end when it is well within for as long."""

import pytest

from engine_host.core.settings import AlertSettings
from engine_host.protocol.bench.alerts import AlertKind
from engine_host.telemetry.alerts import GIB, AlertWatch, disk, measurements

SETTINGS = AlertSettings()
HOT = (AlertKind.GPU_TEMPERATURE, "GPU 0")


def judged(watch: AlertWatch, at: float, degrees: float, *, is_open: bool = False) -> tuple[int, int, int]:
    measured = list(measurements({"gpu.0.temperature": degrees}, SETTINGS))
    found = watch.judge(at, measured, SETTINGS, {HOT} if is_open else set())
    return len(found.begun), len(found.going_on), len(found.ended)


def test_heat_has_to_last_before_it_counts() -> None:
    watch = AlertWatch()
    assert judged(watch, 0, 91) == (0, 0, 0)
    assert judged(watch, 9, 91) == (0, 0, 0)
    assert judged(watch, 10, 91) == (1, 0, 0)
    assert judged(watch, 11, 92, is_open=True) == (0, 1, 0)


def test_a_peak_between_cool_moments_is_none() -> None:
    watch = AlertWatch()
    for at in range(0, 100, 6):
        assert judged(watch, at, 95 if at % 12 else 60) == (0, 0, 0)


def test_it_ends_once_it_was_well_below_for_as_long() -> None:
    watch = AlertWatch()
    assert judged(watch, 0, 86, is_open=True) == (0, 0, 0), "neither too hot nor cool"
    assert judged(watch, 1, 83, is_open=True) == (0, 0, 0)
    assert judged(watch, 5, 90, is_open=True) == (0, 1, 0)
    assert judged(watch, 6, 83, is_open=True) == (0, 0, 0)
    assert judged(watch, 10, 86, is_open=True) == (0, 0, 0), "not well below any more"
    assert judged(watch, 17, 83, is_open=True) == (0, 0, 0)
    assert judged(watch, 27, 83, is_open=True) == (0, 0, 1)


def test_a_threshold_of_zero_tells_nothing_and_ends_what_is_open() -> None:
    off = AlertSettings(gpu_temperature=0, gpu_memory=0, ram=0, disk_free=0, gpu_ecc=False)
    values = {
        "gpu.0.temperature": 120.0,
        "gpu.0.memory.used": 1.0,
        "gpu.0.memory.total": 1.0,
        "ram.used": 1.0,
        "ram.total": 1.0,
    }
    assert not list(measurements(values, off))
    assert not list(disk("/models", 0, off))
    open_ones = [(kind, "x") for kind in AlertKind]
    ended = {kind for kind, _ in AlertWatch().judge(0, [], off, open_ones).ended}
    assert ended == {AlertKind.GPU_TEMPERATURE, AlertKind.GPU_MEMORY, AlertKind.RAM, AlertKind.DISK}


def test_memory_is_judged_by_its_share_of_each_gpu() -> None:
    values = {
        "gpu.0.memory.used": 99.5,
        "gpu.0.memory.total": 100.0,
        "gpu.1.memory.used": 50.0,
        "gpu.1.memory.total": 100.0,
        "gpu.2.memory.used": 50.0,
        "ram.used": 1.0,
        "ram.total": 0.0,
    }
    found = {one.subject: one.beyond for one in measurements(values, SETTINGS)}
    assert found == {"GPU 0": True, "GPU 1": False}, "what has no total is not judged"


def test_a_disk_is_full_below_its_threshold_and_has_room_somewhat_above_it() -> None:
    free = {count: next(disk("/models", count * GIB, SETTINGS)) for count in (4.9, 5.2, 5.6)}
    assert [(one.beyond, one.within) for one in free.values()] == [
        (True, False),
        (False, False),
        (False, True),
    ]


@pytest.mark.parametrize(("counts", "told"), [((3, 3), 0), ((3, 5), 2), ((3,), 0), ((5, 3, 4), 1)])
def test_memory_errors_count_from_the_first_reading_on(counts: tuple[int, ...], told: int) -> None:
    watch, found = AlertWatch(), 0
    for count in counts:
        found += sum(more for _, more in watch.new_errors({"gpu.3.ecc.errors": count}, SETTINGS))
    assert found == told
