"""Reads typed and pasted numbers: the value, or a sentence that says why it is none and what is allowed.

Digits may stand in groups of three, parted as any language does it: 8,192, 8.192, 8 192, 8'192, 8_192. Where
tokens are counted, 8k is 8 × 1,024, as the cards of models mean it.
"""

from __future__ import annotations

import re

from engine_host.protocol.language import tr
from sndr_gui.kit import formats

_TOKENS_OF_K = 1024
_LONGEST = 15
_NARROW = {letter: letter - 0xFEE0 for letter in range(0xFF01, 0xFF5F)}
# Blanks of every width are a plain one by then.
_SIGNS = ",. '_"
_GROUPED = re.compile(r"\d{1,3}(?:([,. '_])\d{3})(?:\1\d{3})*")
_PARTED = re.compile(rf"[\d{re.escape(_SIGNS)}]*\d[\d{re.escape(_SIGNS)}]*")
_THOUSANDS = re.compile(r"(.*\d) ?[kK]")


def parse_int(content: str, low: int, high: int, tokens: bool = False) -> tuple[int | None, str]:
    """Parse a whole number; return it and what is wrong with it. An empty field is None without an error.

    `tokens`: it counts tokens, so that `k` may stand behind it.
    """
    if not content.strip():
        return None, ""
    allowed = tr(
        "A whole number from {low} to {high}, or nothing.", low=formats.number(low), high=formats.number(high)
    )
    try:
        value = whole(content, tokens)
    except ValueError as error:
        return None, f"{error} {allowed}".strip()
    if not low <= value <= high:
        # As it was understood: a sign that parts digits may have been meant to be a point.
        said = tr("That is {value}.", value=formats.number(value)) if not content.strip().isdigit() else ""
        return None, f"{said} {allowed}".strip()
    return value, ""


def whole(content: str, tokens: bool = False) -> int:
    """Return a whole number. Raises ValueError with the reason where there is one to say, or with nothing."""
    plain = _plain(content)
    if (counted := _THOUSANDS.fullmatch(plain)) is not None:
        if not tokens:
            raise ValueError(tr("“k” is understood where tokens are counted: write out the number."))
        if not _is_digits(counted[1]):
            raise ValueError(tr("Before “k” (× 1,024) stand digits alone, as in 128k."))
        return int(counted[1]) * _TOKENS_OF_K
    if _is_digits(plain):
        return int(plain)
    if _GROUPED.fullmatch(plain) and _is_digits(digits := _without_signs(plain)):
        return int(digits)
    if _PARTED.fullmatch(plain):
        raise ValueError(tr("Its digits do not stand in groups of three, as in 131,072."))
    raise ValueError("")


def parse_float(content: str, low: float, high: float) -> tuple[float | None, str]:
    """Parse a number with a point or a comma and return it with what is wrong with it."""
    if not content.strip():
        return None, ""
    value = decimal(content)
    if value is not None and low <= value <= high:
        return value, ""
    return None, tr(
        "A number from {low} to {high}, or nothing.",
        low=formats.number(low, "g"),
        high=formats.number(high, "g"),
    )


def decimal(content: str) -> float | None:
    """Return a number, or None for what is none.

    A single point or comma is the one before the decimals; those before the last one part groups of three.
    """
    plain = _plain(content)
    sign = "-" if plain.startswith("-") else ""
    unsigned = plain.removeprefix("-")
    at = max(unsigned.rfind("."), unsigned.rfind(","))
    before, after = (unsigned[:at], unsigned[at + 1 :]) if at >= 0 else (unsigned, "")
    point = unsigned[at] if at >= 0 else ""
    if point and point in before:
        # Twice the same sign: it parts groups, and there are no decimals.
        before, after = unsigned, ""
    if _GROUPED.fullmatch(before):
        before = _without_signs(before)
    digits = before + after
    if not _is_digits(digits) or (before and not _is_digits(before)) or (after and not _is_digits(after)):
        return None
    return float(f"{sign}{before or '0'}.{after or '0'}")


def _plain(content: str) -> str:
    """Return what was typed with plain digits, blanks and apostrophes; full-width ones are typed in Asia."""
    return re.sub(r"\s", " ", content.translate(_NARROW)).replace("’", "'").replace("−", "-").strip()


def _is_digits(content: str) -> bool:
    return content.isascii() and content.isdigit() and len(content) <= _LONGEST


def _without_signs(content: str) -> str:
    return "".join(letter for letter in content if letter.isdigit())
