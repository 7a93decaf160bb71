"""Formats numbers and names for people; what was not measured is a dash and never 0."""

from collections.abc import Sequence

from engine_host.protocol import language as of_language
from engine_host.protocol.language import language, ntr, tr, unit, written

UNMEASURED = "—"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def number(value: float, form: str = ",") -> str:
    """Return a number in one of Python's forms, with the signs of the language: `8,192`, German `8.192`."""
    return written(format(value, form))


def size(count: float | None) -> str:
    """Return bytes with a binary unit: `21.4 GiB`."""
    if count is None:
        return UNMEASURED
    step = 0
    value = float(count)
    while round(value) >= 1024 and step < len(_UNITS) - 1:
        value /= 1024
        step += 1
    return f"{_short(value)} {unit(_UNITS[step])}" if step else f"{int(value)} {unit('B')}"


def measure(amount: str, of: str) -> str:
    """Return a number that is formatted already with its unit: `21.4 GiB`, Russian `21,4 ГиБ`."""
    return f"{amount} {unit(of)}" if of else amount


def _two(more: float, of: str, less: float, part: str) -> str:
    return f"{measure(str(int(more)), of)} {measure(str(int(less)), part)}"


def share_of(part: float, whole: float) -> float:
    """Return a share for a bar, 0 to 1; of nothing it is 0."""
    return min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0


def used_of(used: float | None, total: float | None) -> str:
    """Return two amounts of memory in the unit of the second: `21.4 / 24 GiB`."""
    if used is None or not total:
        return UNMEASURED
    step = 0
    scale = 1.0
    while total / scale >= 1024 and step < len(_UNITS) - 1:
        scale *= 1024
        step += 1
    return f"{_short(used / scale)} / {_short(total / scale)} {unit(_UNITS[step])}"


def rate(tokens: float | None) -> str:
    """Return tokens a second: `142.6 tok/s`."""
    return UNMEASURED if tokens is None else measure(_short(tokens), "tok/s")


def percent(part: float | None, whole: float | None = 1.0) -> str:
    """Return a part of a whole in per cent: `12 %`."""
    if part is None or not whole:
        return UNMEASURED
    return of_language.percent(f"{100 * part / whole:.0f}")


def count(number: float | None) -> str:
    """Return a number of tokens or parameters: `512`, `8,192`, `32.8k`, `1.2M`, `35B`."""
    if number is None:
        return UNMEASURED
    for scale, sign in ((1e9, "B"), (1e6, "M"), (1e4, "k")):
        # As it is shown: 999,960 is no longer below a million.
        if abs(number) >= 0.99995 * scale:
            return f"{_short(number / (1e3 if sign == 'k' else scale))}{sign}"
    return written(f"{number:,.0f}")


def duration(seconds: float | None) -> str:
    """Return a length of time: `840 ms`, `4.2 s`, `3 min 5 s`, `3 h 12 min`."""
    if seconds is None:
        return UNMEASURED
    if round(seconds, 3) < 1:
        return measure(f"{max(0, seconds) * 1000:.0f}", "ms")
    if round(seconds, 1) < 60:
        return measure(written(f"{seconds:.1f}"), "s")
    seconds = int(seconds + 0.05)
    if seconds < 3600:
        return _two(seconds // 60, "min", seconds % 60, "s")
    if seconds < 86400:
        return _two(seconds // 3600, "h", seconds % 3600 // 60, "min")
    return _two(seconds // 86400, "d", seconds % 86400 // 3600, "h")


def age(seconds: float) -> str:
    """Return the time since something was read: `12 s ago`, `3 min ago`."""
    if seconds < 90:
        return tr("{seconds} s ago", seconds=f"{max(0, seconds):.0f}")
    if seconds < 5400:
        return tr("{minutes} min ago", minutes=f"{seconds / 60:.0f}")
    return tr("{hours} h ago", hours=f"{seconds / 3600:.0f}")


def strip_backticks(text: str) -> str:
    """Return a sentence without the backticks that mark its commands for a terminal."""
    return text.replace("`", "")


def listed(names: Sequence[str], most: int = 4) -> str:
    """Return names as one reads them out: `a, b and c`; of many the first and how many more."""
    shown = [shortened(name) for name in names[:most]]
    if len(names) > most:
        shown.append(tr("{number} more", number=len(names) - most))
    return (
        tr("{names} and {last}", names=", ".join(shown[:-1]), last=shown[-1])
        if len(shown) > 1
        else "".join(shown)
    )


def either(names: Sequence[str]) -> str:
    """Return names of which one is enough: `a, b or c`."""
    if len(names) < 2:
        return "".join(names)
    return tr("{names} or {last}", names=", ".join(names[:-1]), last=names[-1])


def inside(word: str) -> str:
    """Return a word as it stands within a sentence; German keeps its capitals, which nouns have anywhere."""
    return word if language() == "de" else word.lower()


def shortened(name: str, most: int = 28) -> str:
    """Return a name in one line, for a button or a title: one that is longer ends with an ellipsis."""
    # Names come from outside, and of one with a line feed a title would show the first half.
    line = "".join(one if one.isprintable() else " " for one in name)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def plural(number: int, one: str, many: str | None = None) -> str:
    """Return a count with its word, `3 requests`; the messages are `{n} request` and `{n} requests`."""
    return ntr("{n} " + one, "{n} " + (many or one + "s"), number)


def _short(value: float) -> str:
    # As it is shown: 999.96 is no longer below a thousand.
    text = f"{value:.1f}" if abs(value) < 999.95 else f"{value:,.0f}"
    return written(text.removesuffix(".0"))
