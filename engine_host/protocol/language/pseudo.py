"""A language that nobody speaks: English with accents, a third longer, and marked at both ends."""

import gettext
import re

OPENED, CLOSED = "‹", "›"
"""One letter at each end: with more, every short button would be twice as long, as in no language."""
_LETTERS = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "àƀçđéƒĝĥíĵķļɱñöþɋŕšţûṽŵẋýžÀƁÇĐÉƑĜĤÍĴĶĻṀÑÖÞɊŔŠŢÛṼŴẊÝŽ",
)
_KEPT = re.compile(r"(\{[a-z_][a-z0-9_]*\}|<[^>]*>|&[a-z]+;|&(?=\w))")
_LONGER = 0.35


def pseudo(message: str) -> str:
    """Return a message as the pseudo-language has it; names of values and tags stay."""
    parts = _KEPT.split(message)
    said = "".join(part if place % 2 else part.translate(_LETTERS) for place, part in enumerate(parts))
    more = round(len(_KEPT.sub("", message)) * _LONGER) - len(OPENED) - len(CLOSED)
    # In words of their own, so that a long text wraps as a real one does.
    longer = "".join(" " if place % 8 == 0 else "~" for place in range(max(0, more)))
    return f"{OPENED}{said}{longer}{CLOSED}"


class Pseudo(gettext.NullTranslations):
    """A catalogue in which every message has a translation."""

    def gettext(self, message: str) -> str:
        """Return the message, put into pseudo-language."""
        return pseudo(message)

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        """Return the form for a number, put into pseudo-language."""
        return pseudo(msgid1 if n == 1 else msgid2)
