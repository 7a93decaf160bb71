"""Texts from outside, cut to a length that can be kept and shown, with a mark that says so."""

from typing import Any


def cut_text(text: str, most: int) -> str:
    """Return the text, or its beginning and how many characters are left out."""
    left_out = len(text) - most
    return text if left_out <= 0 else f"{text[:most]}… [{left_out:,} more characters]"


def cut_texts(value: Any, most: int) -> Any:
    """Return a JSON value with every text in it cut, those that name things too."""
    if isinstance(value, str):
        return cut_text(value, most)
    if isinstance(value, dict):
        return {cut_text(name, most): cut_texts(part, most) for name, part in value.items()}
    if isinstance(value, list):
        return [cut_texts(part, most) for part in value]
    return value
