"""The times in which a host measured nothing, and what a graph says of them."""

import time

from sndr_gui.models.monitor.lines import Line
from sndr_gui.models.monitor.unmeasured import unmeasured


def line(*points: tuple[float, float | None]) -> Line:
    return Line(
        "ram.used", "bytes", "RAM", "test", at=[at for at, _ in points], values=[one for _, one in points]
    )


def test_before_the_first_value_it_says_when_that_came_and_between_two_that_there_was_none() -> None:
    now = time.time()
    first = now - 100
    found = unmeasured(
        line((first, 1.0), (first + 1, 1.0), (first + 2, None), (now - 20, 1.0), (now, 1.0)),
        now - 300,
        now,
        25,
    )
    assert [(one.since, one.until) for one in found] == [(now - 300, first), (first + 1, now - 20)]
    clock = time.strftime("%H:%M", time.localtime(first))
    # Just after midnight the first value is of yesterday.
    assert found[0].words.startswith("not measured until ")
    assert found[0].words.endswith(clock)
    assert found[1].words == "not measured"


def test_what_is_measured_all_the_time_has_none_and_neither_has_what_is_not_known() -> None:
    assert unmeasured(line((0.0, 1.0), (5.0, 1.0), (10.0, 1.0)), 0.0, 10.0, 6.0) == ()
    assert unmeasured(line(), 0.0, 10.0, 6.0) == ()
    assert unmeasured(None, 0.0, 10.0, 6.0) == ()


def test_of_another_day_it_says_the_day() -> None:
    found = unmeasured(line((100_000.0, 1.0)), 0.0, 200_000.0, 60.0)
    assert time.strftime("%Y-%m-%d %H:%M", time.localtime(100_000.0)) in found[0].words
