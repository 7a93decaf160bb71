"""Lines of graphs: peaks stay, gaps stay, and every page shows the same of the same seconds."""

import math
from dataclasses import replace

import numpy as np

from sndr_gui.models.monitor.lines import Line, in_order, one_after_another, split_name
from sndr_gui.views.graphs.plots import drawn

START = 1_795_000_000.0


def line(peaks: bool = True) -> Line:
    return Line("engine.prefill_rate", "tokens/s", "Prefill", "the engine", peaks)


def test_a_peak_stays_in_its_step_and_the_newest_value_is_told() -> None:
    made = line()
    for at, value in ((0.1, 0.0), (0.6, 1443.0), (1.1, 0.0), (1.6, 0.0)):
        made.add(START + at, value, 1.0)
    assert (made.at, made.values) == ([START, START + 1], [1443.0, 0.0])
    assert made.latest == 0.0
    wide = line()
    for second in range(25):
        wide.add(START + second, 557.9 if second == 12 else 0.0, 10.0)
    assert wide.values == [0.0, 557.9, 0.0]


def test_a_line_without_peaks_goes_to_the_newest_value() -> None:
    made = line(peaks=False)
    made.add(START, 2.0, 1.0)
    made.add(START + 0.5, 1.0, 1.0)
    assert made.values == [1.0]


def test_what_was_not_measured_is_a_gap_and_one_value_in_it_is_seen() -> None:
    made = line()
    for at, value in ((0.0, 0.0), (1.0, 0.0), (5.0, 1443.0)):
        made.add(START + at, value, 1.0)
    assert made.values == [0.0, 0.0, None, 1443.0]
    xs, ys = drawn(made, START + 6, 1.0, 0.5)
    assert xs[-2:].tolist() == [-1.0, -0.5]
    assert ys[-2:].tolist() == [1443.0, 1443.0]
    assert math.isnan(ys[2])
    assert len(xs) == 5
    made.cut(START + 2)
    assert made.values == [None, 1443.0]


def test_many_points_are_drawn_as_the_extremes_of_each_pixel() -> None:
    values: list[float | None] = [5.0 if second == 70 else 1.0 for second in range(100)]
    # Between 20 and 60 nothing was measured but once.
    values[20:60] = [None] * 40
    values[40] = 9.0
    made = Line("x", "", "", "", at=[START + second for second in range(100)], values=values)
    xs, ys = drawn(made, START + 100, 2.0, 3.0, 10.0)
    assert len(xs) == 20
    assert (np.nanmax(ys), np.nanmin(ys)) == (18.0, 2.0)
    assert ys[14:16].tolist() == [2.0, 10.0]
    assert ys[8:10].tolist() == [18.0, 18.0]
    assert xs[8:10].tolist() == [-60.0, -57.0]
    assert np.isnan(ys[[4, 6, 10]]).all()
    # As many as there are pixels are drawn as they are.
    assert len(drawn(made, START + 100, 2.0, 3.0, 0.5)[0]) == 101


def test_the_numbers_of_a_line_go_with_its_points() -> None:
    made = line()
    for at, value in ((0.0, 1.0), (0.5, 3.0), (9.0, 2.0), (10.0, 4.0)):
        made.add(START + at, value, 1.0)
        assert made.numbers()[0].tolist() == made.at
    assert [None if math.isnan(one) else one for one in made.numbers()[1]] == made.values
    made.cut(START + 5)
    titled = replace(made, title="another")
    made.add(START + 11, 5.0, 1.0)
    assert titled.numbers()[0].tolist() == titled.at == [START + 9, START + 10, START + 11]


def ran(engine: str, start: int, end: int) -> Line:
    at = [START + second for second in range(start, end)]
    return Line(
        f"engine.{engine}.decode_rate", "tokens/s", "Decode", "it", at=at, values=[1.0 * end] * len(at)
    )


def test_engines_one_after_another_are_one_line_and_those_beside_it_are_not() -> None:
    own, before, older, beside = ran("c", 20, 30), ran("b", 10, 20), ran("a", 0, 10), ran("d", 15, 30)
    led = one_after_another(own, (older, beside, before))
    assert led is not None
    assert led.at == [START + second for second in range(30)]
    assert set(led.values) == {10.0, 20.0, 30.0}
    assert one_after_another(None, (before, older)) is not None
    assert one_after_another(None, ()) is None


def test_a_series_tells_its_engine() -> None:
    assert split_name("engine.a-1.kv.tokens") == ("a-1", "kv.tokens")
    assert split_name("gpu.0.memory.used") == ("", "gpu.0.memory.used")


def test_a_part_stands_after_the_whole_and_gpu_10_after_gpu_9() -> None:
    names = ("engine.kv.cached", "gpu.10.used", "engine.kv.share", "gpu.9.used")
    lines = sorted((Line(name, "", name, "") for name in names), key=in_order)
    assert [line.name for line in lines] == [
        "engine.kv.share",
        "gpu.9.used",
        "gpu.10.used",
        "engine.kv.cached",
    ]
