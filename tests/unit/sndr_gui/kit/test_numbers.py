"""Typed numbers: the value, or what is allowed."""

import pytest

from sndr_gui.kit import numbers


@pytest.mark.parametrize(
    ("content", "value", "wrong"),
    [
        ("", None, False),
        (" 512 ", 512, False),
        ("5", None, True),
        ("1e3", None, True),
        ("9" * 20, None, True),
    ],
)
def test_whole_numbers(content: str, value: int | None, wrong: bool) -> None:
    found, error = numbers.parse_int(content, 128, 10_000)
    assert (found, bool(error)) == (value, wrong)


@pytest.mark.parametrize(
    ("content", "value", "wrong"),
    [("", None, False), ("0,7", 0.7, False), ("0.7", 0.7, False), ("x", None, True), ("9", None, True)],
)
def test_decimal_numbers(content: str, value: float | None, wrong: bool) -> None:
    found, error = numbers.parse_float(content, 0, 2)
    assert (found, bool(error)) == (value, wrong)
