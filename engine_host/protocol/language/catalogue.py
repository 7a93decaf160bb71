"""The messages of one language, loaded once; a message without a translation is shown in English."""

from __future__ import annotations

import gettext
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine_host.protocol.language import numbers
from engine_host.protocol.language.choice import LANGUAGES, PSEUDO
from engine_host.protocol.language.filled import filled, places

DOMAIN = "sndr"
_ENGLISH = gettext.NullTranslations()


class _Installed:
    """The catalogue in force; English until something else is installed."""

    language = "en"
    messages: gettext.NullTranslations = _ENGLISH
    # Those who install a language show the words themselves; others send them to such.
    sends = True
    # Makes captions of the keys of settings in a message; None where keys are what a person types.
    captioned: Callable[[str], str] | None = None


def install(language: str) -> None:
    """Speak a language from now on; one without a file stays English.

    Tables of texts are made when their module is imported: install before importing what has any.
    """
    _Installed.language, _Installed.messages, _Installed.sends = "en", _ENGLISH, False
    if language == PSEUDO:
        from engine_host.protocol.language.pseudo import Pseudo

        _Installed.language, _Installed.messages = PSEUDO, Pseudo()
    elif language != "en" and language in LANGUAGES:
        try:
            with _file_of(language).open("rb") as file:
                _Installed.messages = gettext.GNUTranslations(file)
        except (OSError, ValueError, LookupError, struct.error):
            # The program goes on in English: a missing or damaged file of words ends nothing.
            return
        _Installed.language = language


def name_settings(captioned: Callable[[str], str] | None) -> None:
    """Have every message pass through what makes captions of its keys of settings; None leaves the keys."""
    _Installed.captioned = captioned


def language() -> str:
    """Return the language that is installed."""
    return _Installed.language


class Said(str):
    """A text that knows its message and values, and so can be said again in the language of whoever reads it.

    What is made of it by `+`, `join` or a cut is plain text.
    """

    one: str
    many: str
    number: float
    values: Mapping[str, Any]

    @classmethod
    def of(cls, one: str, values: Mapping[str, Any], many: str = "", number: float = 1) -> Said:
        """Return a message with its values, in the installed language."""
        shown = values if _Installed.sends else {name: _told(value) for name, value in values.items()}
        said = cls(_worded(_Installed.messages, one, many, number, shown))
        said.one, said.many, said.number, said.values = one, many, number, values
        return said

    @property
    def english(self) -> str:
        """The same in English."""
        values = {
            name: value.english if isinstance(value, Said) else value for name, value in self.values.items()
        }
        return _worded(_ENGLISH, self.one, self.many, self.number, values)


def tr(message: str, /, **values: object) -> str:
    """Return a message in the installed language, with values for its `{names}`."""
    if _Installed.sends:
        return Said.of(message, {name: _kept(value) for name, value in values.items()})
    return _worded(_Installed.messages, message, "", 1, values)


def ntr(one: str, many: str, number: float, /, **values: object) -> str:
    """Return the form of a message that a number needs; `{n}` is that number."""
    values.setdefault("n", f"{number:,}")
    if _Installed.sends:
        return Said.of(one, {name: _kept(value) for name, value in values.items()}, many, number)
    return _worded(_Installed.messages, one, many, number, values)


def translated(message: str) -> str:
    """Return a message that comes from a table elsewhere, such as the settings'."""
    return _worded(_Installed.messages, message, "", 1, {})


def _kept(value: object) -> Any:
    """Return a value as it can travel; an exception is what it says."""
    if isinstance(value, Exception) and value.args and isinstance(value.args[0], Said):
        return value.args[0]
    if value is None or isinstance(value, (bool, int, float, Said)):
        return value
    if isinstance(value, (list, tuple)):
        return [_kept(one) for one in value]
    return str(value)


def _told(value: Any) -> Any:
    """Return a value that came with a message, as the installed language writes it."""
    if isinstance(value, list):
        return [_told(one) for one in value]
    plain = isinstance(value, str) and not isinstance(value, Said)
    return numbers.measured(value, _Installed.language) if plain else value


def _worded(
    messages: gettext.NullTranslations, one: str, many: str, number: float, values: Mapping[str, Any]
) -> str:
    english = one if not many or number == 1 else many
    said = messages.ngettext(one, many, round(number)) if many else messages.gettext(one) if one else one
    if _Installed.captioned is not None:
        english, said = _Installed.captioned(english), _Installed.captioned(said)
    if not values:
        return said
    # A translation that names what nobody gives would show braces: then it is English.
    if not places(said) <= values.keys():
        said = english
    spoken = _Installed.language if messages is not _ENGLISH else "en"
    if many and values.get("n") == f"{number:,}":
        values = {**values, "n": numbers.written(f"{number:,}", spoken)}
    return filled(said, {**{name: f"{{{name}}}" for name in places(said)}, **values}, spoken)


def written(number: str) -> str:
    """Return a number that was formatted as in English, `8,192.5`, as the installed language writes it."""
    return numbers.written(number, _Installed.language)


def percent(number: str) -> str:
    """Return a number that is written already with its sign of per cent: `99.5 %`, Chinese `99.5%`."""
    return numbers.percent(number, _Installed.language)


def formed(number: float, form: str) -> str:
    """Return a number in one of Python's forms, a share as `.0%` too, as the installed language writes it."""
    return numbers.formed(number, form, _Installed.language)


def measured(text: str) -> str:
    """Return a measure in English, `3 min 5.5 s`, as the installed language writes it; or what else it is."""
    return numbers.measured(text, _Installed.language)


def unit(name: str) -> str:
    """Return a unit, `GiB`, as the installed language writes it."""
    return numbers.unit(name, _Installed.language)


@contextmanager
def english() -> Iterator[None]:
    """Speak English for a while: what is made is for others, who may not know the language of this person."""
    before = _Installed.language, _Installed.messages, _Installed.captioned
    _Installed.language, _Installed.messages, _Installed.captioned = "en", _ENGLISH, None
    try:
        yield
    finally:
        _Installed.language, _Installed.messages, _Installed.captioned = before


@contextmanager
def sending() -> Iterator[None]:
    """Speak as a host for a while: English that remembers its messages, for whoever reads it to translate."""
    before = _Installed.sends
    with english():
        _Installed.sends = True
        try:
            yield
        finally:
            _Installed.sends = before


def _file_of(language: str) -> Path:
    top = Path(__file__).resolve().parents[3]
    # The installed place first: beside an installed package a folder may be anybody's.
    for place in (top / "sndr_gui" / "resources", top / "resources"):
        if (place / "locales").is_dir():
            return place / "locales" / language / "LC_MESSAGES" / f"{DOMAIN}.mo"
    raise FileNotFoundError(f"There are no languages beside {top}.")
