"""Text from outside as a terminal may print it: what would steer the terminal is shown instead of obeyed."""

_KEPT = "\n\t"
# Directions that let a text stand in another order than it is read in (Unicode TR 36, 3.6).
_DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

# Some programs break a line there, so that a text could begin a line of its own.
_SEPARATORS = "\u2028\u2029"


def _picture(letter: str) -> str:
    code = ord(letter)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"


_SHOWN = {
    code: _picture(chr(code))
    for code in (*range(0x20), 0x7F, *range(0x80, 0xA0), *map(ord, _DIRECTIONS + _SEPARATORS))
    if chr(code) not in _KEPT
}
_ESCAPED = {code: f"\\u{code:04x}" for code in _SHOWN}


def visible(text: str) -> str:
    """Return the text with every control character as a picture of itself; line breaks and tabs stay."""
    return text.translate(_SHOWN)


def visible_json(text: str) -> str:
    """Return a JSON text with the same characters escaped, so that it reads back as it was."""
    return text.translate(_ESCAPED)
