"""Amounts at the border to the next unit: what is shown is what decides."""

import pytest

from sndr_gui.kit import formats


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (2**30 - 1, "1 GiB"),
        (2**30, "1 GiB"),
        (2**60, "1,048,576 TiB"),
    ],
)
def test_a_size_never_has_1024_of_a_unit(given: int, text: str) -> None:
    assert formats.size(given) == text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        *((0.9996, "1.0 s"), (59.94, "59.9 s"), (59.96, "1 min 0 s"), (3599.97, "1 h 0 min")),
        *((86399.97, "1 d 0 h"), (None, "—")),
    ],
)
def test_a_length_of_time_never_has_60_of_a_unit(given: float | None, text: str) -> None:
    assert formats.duration(given) == text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (9999, "9,999"),
        (10_000, "10k"),
        (999_940, "999.9k"),
        (999_960, "1M"),
        (999_960_000, "1B"),
        (1e12, "1,000B"),
    ],
)
def test_a_count_never_has_a_thousand_of_a_unit_below_the_last(given: float, text: str) -> None:
    assert formats.count(given) == text


def test_a_shortened_name_is_one_line_whatever_it_holds() -> None:
    assert formats.shortened("qwen\n<b>\x1b[31m\u202eevil") == "qwen <b> [31m evil"
    assert formats.shortened("x" * 40) == "x" * 27 + "…"
