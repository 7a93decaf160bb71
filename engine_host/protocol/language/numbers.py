"""Numbers and measures as a language writes them: what parts thousands, its decimal sign, its units."""

import re

_SIGNS = {"de": (".", ","), "ru": ("\u00a0", ",")}
"""Of the languages that write them otherwise than English."""
_UNITS = {
    "ru": {
        "B": "Б",
        "KiB": "КиБ",
        "MiB": "МиБ",
        "GiB": "ГиБ",
        "TiB": "ТиБ",
        "ms": "мс",
        "s": "с",
        "min": "мин",
        "h": "ч",
        "d": "дн.",
        "W": "Вт",
        "kWh": "кВт·ч",
        "J": "Дж",
        "tok/s": "ток/с",
    },
    "zh": {"ms": "毫秒", "s": "秒", "min": "分", "h": "小时", "d": "天"},
    "ja": {"s": "秒", "min": "分", "h": "時間", "d": "日"},
}
"""Of the languages whose units have other letters; the rest are written as in English."""
_PERCENT = {"de": "\u00a0%", "ru": "\u00a0%", "zh": "%", "ja": "%"}
"""The sign of per cent as it follows a number, ` %` elsewhere; in these languages no line begins with it."""
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_ONE = rf"{_NUMBER} (?:[KMGT]iB|B|ms|s|min|h|d|W|kWh|J|tok/s|%|°C)"
_MEASURE = re.compile(rf"{_ONE}(?: {_ONE})*|\d{{1,3}}(?:,\d{{3}})+")


def written(number: str, language: str) -> str:
    """Return a number that was formatted as in English, `8,192.5`, as a language writes it."""
    if (signs := _SIGNS.get(language)) is None:
        return number
    return number.translate({ord(","): signs[0], ord("."): signs[1]})


def unit(name: str, language: str) -> str:
    """Return a unit, `GiB`, as a language writes it."""
    return _UNITS.get(language, {}).get(name, name)


def percent(number: str, language: str) -> str:
    """Return a number that is written already, `99.5`, with its sign of per cent."""
    return number + _PERCENT.get(language, " %")


def formed(number: float, form: str, language: str) -> str:
    """Return a number in one of Python's forms, `.0%` too, as a language writes it."""
    said = written(format(number, form), language)
    return percent(said[:-1], language) if said.endswith("%") else said


def measured(text: str, language: str) -> str:
    """Return a text in the signs and units of a language where it is a measure alone: `3 min 5.5 s`."""
    if not _MEASURE.fullmatch(text):
        return text
    parts = text.split(" ")
    said = " ".join(
        unit(part, language) if place % 2 else written(part, language) for place, part in enumerate(parts)
    )
    return said.replace(" %", percent("", language))
