"""Parses typed numbers: the value, or a sentence that says what is allowed."""

from __future__ import annotations

from engine_host.protocol.language import tr
from sndr_gui.kit import formats


def parse_int(content: str, low: int, high: int) -> tuple[int | None, str]:
    """Parse a whole number; return it and what is wrong with it. An empty field is None without an error."""
    content = content.strip()
    if not content:
        return None, ""
    wrong = tr(
        "A whole number from {low} to {high}, or nothing.", low=formats.number(low), high=formats.number(high)
    )
    if not (content.isascii() and content.isdigit()) or len(content) > 15:
        return None, wrong
    value = int(content)
    return (value, "") if low <= value <= high else (None, wrong)


def parse_float(content: str, low: float, high: float) -> tuple[float | None, str]:
    """Parse a number with a point or a comma and return it with what is wrong with it."""
    content = content.strip().replace(",", ".")
    if not content:
        return None, ""
    wrong = tr(
        "A number from {low} to {high}, or nothing.",
        low=formats.number(low, "g"),
        high=formats.number(high, "g"),
    )
    unsigned = content.removeprefix("-") if low < 0 else content
    digits = unsigned.replace(".", "", 1)
    if not (digits.isascii() and digits.isdigit()):
        return None, wrong
    value = float(content)
    return (value, "") if low <= value <= high else (None, wrong)
