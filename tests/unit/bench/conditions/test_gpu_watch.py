"""Energy and slowed clocks of rounds, by readings of FAKE GPUs."""

import asyncio
from typing import Any

import pytest

from engine_host.bench.conditions.gpu_watch import GpuWatch, round_of, throttled
from engine_host.bench.lab.figures import part_result
from engine_host.protocol.bench.lab import Gate, GpuRound, Standing
from engine_host.protocol.host import Gpu, ThrottleReason
from tests.unit.bench.lab.test_figures import PART, five


def gpu(index: int = 0, **changed: Any) -> Gpu:
    return Gpu(index=index, uuid=f"FAKE-{index}", name="FAKE", memory_total=1, memory_used=0, **changed)


def test_the_energy_of_a_round_is_what_the_counters_of_all_its_gpus_went_up_by() -> None:
    readings = [
        [gpu(0, energy=100.0, clock=1000), gpu(1, energy=7.0, clock=1200)],
        [gpu(0, energy=130.0, clock=1400), gpu(1, energy=17.0, clock=1200)],
    ]
    found = round_of("essay", 1, 2.0, readings)
    assert (found.energy, found.gpus, found.clock, found.slowed) == (40.0, (0, 1), 1200, 0.0)


@pytest.mark.parametrize("end", [None, 99.0])
def test_a_counter_that_is_not_there_or_went_back_tells_no_energy(end: float | None) -> None:
    found = round_of("essay", 1, 2.0, [[gpu(energy=100.0)], [gpu(energy=end)]])
    assert found.energy is None


def test_a_gpu_that_lost_its_clocks_to_heat_has_no_speed_and_a_power_limit_is_a_setting() -> None:
    hot = gpu(throttled_by=(ThrottleReason.THERMAL,))
    capped = gpu(throttled_by=(ThrottleReason.POWER_CAP,))
    assert round_of("essay", 1, 2.0, [[capped], [capped]]).slowed == 0.0
    rounds = [round_of("essay", turn, 2.0, [[hot], [capped]]) for turn in range(1, 6)]
    assert throttled(rounds, "essay") == "a GPU was slowed down (heat) in 50 % of the time"
    assert throttled(rounds, "other") == ""
    found = part_result(PART, five(), gpu_rounds=rounds)
    assert {one.standing for one in found.figures} == {Standing.NOT_MEASURED}
    assert {one.gate for one in found.figures} == {Gate.THROTTLED}


def test_heat_in_the_warm_up_alone_takes_nothing() -> None:
    hot = GpuRound(part="essay", round=0, seconds=5.0, gpus=(0,), slowed=1.0, slowed_by=("heat",))
    assert part_result(PART, five(), gpu_rounds=[hot]).figures[0].gate is not Gate.THROTTLED


def test_the_energy_of_a_thousand_tokens_counts_the_rounds_that_tell_both() -> None:
    rounds = [GpuRound(part="essay", round=turn, seconds=2.0, gpus=(0,), energy=22.0) for turn in (1, 2)]
    rounds.append(GpuRound(part="essay", round=3, seconds=2.0, gpus=(0,)))
    assert part_result(PART, five(), gpu_rounds=rounds).energy == pytest.approx(2000.0)
    assert part_result(PART, five()).energy is None


def test_rounds_are_watched_where_the_engine_has_gpus_and_nothing_is_read_where_it_has_none() -> None:
    reads = 0

    def without() -> list[Gpu]:
        nonlocal reads
        reads += 1
        return []

    async def go() -> tuple[GpuWatch, GpuWatch, GpuWatch]:
        bare, unknown = GpuWatch(None, without), GpuWatch(None)
        some = GpuWatch(None, lambda: [gpu(energy=5.0)])
        for watch in (bare, unknown, some):
            for turn in range(2):
                async with watch.during("essay", turn):
                    pass
        return bare, unknown, some

    bare, unknown, some = asyncio.run(go())
    assert (bare.rounds, unknown.rounds, reads) == ([], [], 1)
    assert [(one.round, one.energy) for one in some.rounds] == [(0, 0.0), (1, 0.0)]
