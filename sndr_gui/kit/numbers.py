"""Numbers as a person types them: the value, or a sentence that says what is allowed."""

from __future__ import annotations


def whole(content: str, low: int, high: int) -> tuple[int | None, str]:
    """The whole number in a field and what is wrong with it; an empty field leaves the choice open."""
    content = content.strip()
    if not content:
        return None, ""
    wrong = f"A whole number from {low:,} to {high:,}, or nothing."
    if not (content.isascii() and content.isdigit()) or len(content) > 15:
        return None, wrong
    value = int(content)
    return (value, "") if low <= value <= high else (None, wrong)


def decimal(content: str, low: float, high: float) -> tuple[float | None, str]:
    """The number in a field, with a point or a comma, and what is wrong with it."""
    content = content.strip().replace(",", ".")
    if not content:
        return None, ""
    wrong = f"A number from {low:g} to {high:g}, or nothing."
    digits = content.replace(".", "", 1)
    if not (digits.isascii() and digits.isdigit()):
        return None, wrong
    value = float(content)
    return (value, "") if low <= value <= high else (None, wrong)
