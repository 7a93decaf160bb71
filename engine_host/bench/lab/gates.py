"""Gates: is an answer coherent text, and not a circle of words; a fast engine may well speak nonsense."""

import re
from collections import Counter

from engine_host.protocol.language import formed, ntr

LEAST_WORDS = 12
"""An answer of fewer words shows no loop and no variety."""
_VARIETY_OF = 200
_REPEATED_LINES = 5
_REPEATED_SHARE = 0.2
_SHORT_LINE = 12
_LONGEST_UNIT = 60
_LOOP_TIMES = 4
_LOOP_LEAST = 24
_WORD = re.compile(r"\w+")
# Rules of signs are drawn in code and in tables.
_PIECE = re.compile(r"\w+|[^\w\s\-=#*_~.|+/]")
_TABLE_RULE = re.compile(r"[\W_]*")


def fault(text: str, *, least_variety: float | None) -> str:
    """Return why an answer is no coherent text; empty where it is. Without a least variety only for loops.

    Source: the checks of verify-full in the reference recipes: no cascade, a line fewer than five times,
    and at least so many different words among the first 200.
    """
    if not text.strip():
        return "it is empty"
    pieces = _PIECE.findall(text.lower())
    if (unit := _loop(pieces)) is not None:
        return f"it goes in a circle of {unit} words"
    if not (words := _WORD.findall(text.lower())[:_VARIETY_OF]):
        return "it holds no word"
    if least_variety is None or len(words) < LEAST_WORDS:
        return ""
    share = len(set(words)) / len(words)
    if share < least_variety:
        return f"{formed(share, '.0%')} of its words differ, and {formed(least_variety, '.0%')} are asked for"
    return _repeated(text)


def too_short(text: str, *, least_variety: float | None) -> str:
    """Return why nothing can be told of an answer, neither well nor ill; empty where it can, or need not."""
    words = 0 if least_variety is None else len(_WORD.findall(text))
    if not 0 < words < LEAST_WORDS:
        return ""
    return ntr("it has {n} word, too few to be judged", "it has {n} words, too few to be judged", words)


def _repeated(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if not _TABLE_RULE.fullmatch(line)]
    counted = Counter(line for line in lines if len(line) >= _SHORT_LINE)
    for _, times in counted.most_common(1):
        if times >= _REPEATED_LINES and times >= _REPEATED_SHARE * len(lines):
            return f"a line stands in it {times} times"
    return ""


def _loop(pieces: list[str]) -> int | None:
    """Return the length of the shortest unit that comes at least four times in a row; None without one."""
    for unit in range(1, _LONGEST_UNIT + 1):
        needed = max(_LOOP_LEAST, _LOOP_TIMES * unit) - unit
        same = 0
        for place in range(unit, len(pieces)):
            same = same + 1 if pieces[place] == pieces[place - unit] else 0
            if same >= needed:
                return unit
    return None
