"""The small line of the last minutes: what is joined, how far its scale goes, which minutes are named."""

import time
from itertools import pairwise

import pytest
from PySide6.QtCore import QRectF

from sndr_gui.views.graphs.trend import Trend, minutes_named
from tests.views.conftest import Stage

AREA = QRectF(44, 6, 400, 90)


def runs(trend: Trend, top: float = 10.0) -> list[int]:
    """How many points each joined line has."""
    return [len(run) for run in trend._runs(AREA, top)]


async def test_points_at_their_step_are_joined_and_a_gap_stays_one(stage: Stage) -> None:
    del stage
    now = time.time()
    at = [now - 100 + 10 * number for number in range(11)]
    trend = Trend("CPU, %", 600, step=10.0)
    trend.show_points([(one, 5.0) for one in at], now)
    assert runs(trend) == [11]
    trend.show_points([(one, 5.0) for one in at if not now - 70 < one < now - 30], now)
    assert runs(trend) == [4, 4]
    unstepped = Trend("Decode", 300)
    unstepped.show_points([(now - 20, 1.0), (now - 18, 1.0), (now - 10, 1.0), (now - 8, 1.0)], now)
    assert runs(unstepped) == [2, 2]


@pytest.mark.parametrize(("most", "top"), [(100.0, 100.0), (None, 200.0)])
async def test_a_share_goes_no_further_than_all_of_it(stage: Stage, most: float | None, top: float) -> None:
    del stage
    trend = Trend("CPU, %", 600, most=most)
    trend.show_points([(1.0, 97.0), (2.0, 99.0)], 3.0)
    assert trend.top == top


@pytest.mark.parametrize("width", [60, 150, 240, 400, 700, 1200])
def test_no_label_of_a_minute_covers_another(width: int) -> None:
    for minutes in (5, 10):
        named = list(minutes_named(minutes, width))
        assert named[-1] == 0
        apart = [(before - after) * width / minutes for before, after in pairwise(named)]
        assert all(one >= 100 or len(named) == 2 for one in apart)
    assert list(minutes_named(5, 700)) == [5, 4, 3, 2, 1, 0]
