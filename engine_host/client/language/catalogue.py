"""The messages of one language, loaded once; a message without a translation is shown in English."""

from __future__ import annotations

import gettext
import re
import struct
from collections.abc import Mapping
from pathlib import Path

from engine_host.client.language.choice import LANGUAGES, PSEUDO

DOMAIN = "sndr"
_PLACE = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


class _Installed:
    """The catalogue in force; English until something else is installed."""

    language = "en"
    messages: gettext.NullTranslations = gettext.NullTranslations()


def install(language: str) -> None:
    """Speak a language from now on; one without a file stays English.

    Tables of texts are made when their module is imported: install before importing what has any.
    """
    _Installed.language, _Installed.messages = "en", gettext.NullTranslations()
    if language == PSEUDO:
        from engine_host.client.language.pseudo import Pseudo

        _Installed.language, _Installed.messages = PSEUDO, Pseudo()
    elif language != "en" and language in LANGUAGES:
        try:
            with _file_of(language).open("rb") as file:
                _Installed.messages = gettext.GNUTranslations(file)
        except (OSError, ValueError, LookupError, struct.error):
            # The program goes on in English: a missing or damaged file of words ends nothing.
            return
        _Installed.language = language


def language() -> str:
    """Return the language that is installed."""
    return _Installed.language


def tr(message: str, /, **values: object) -> str:
    """Return a message in the installed language, with values, formatted by the caller, for its `{names}`."""
    return _filled(_looked_up(message), message, values)


def ntr(one: str, many: str, number: float, /, **values: object) -> str:
    """Return the form of a message that a number needs; `{n}` is that number."""
    values.setdefault("n", f"{number:,}")
    said = _Installed.messages.ngettext(one, many, round(number))
    return _filled(said, one if number == 1 else many, values)


def translated(message: str) -> str:
    """Return a message that comes from a table elsewhere, such as the settings' or the findings'."""
    return _looked_up(message)


def places(message: str) -> set[str]:
    """Return the names in a message that stand for values."""
    return set(_PLACE.findall(message))


def _looked_up(message: str) -> str:
    # The empty message is the header of the file.
    return _Installed.messages.gettext(message) if message else message


def _filled(said: str, english: str, values: Mapping[str, object]) -> str:
    if not values:
        return said
    # A translation that names what nobody gives would show braces: then it is English.
    if not places(said) <= values.keys():
        said = english
    return _PLACE.sub(lambda place: str(values.get(place[1], place[0])), said)


def _file_of(language: str) -> Path:
    top = Path(__file__).resolve().parents[3]
    # The installed place first: beside an installed package a folder may be anybody's.
    for place in (top / "sndr_gui" / "resources", top / "resources"):
        if (place / "locales").is_dir():
            return place / "locales" / language / "LC_MESSAGES" / f"{DOMAIN}.mo"
    raise FileNotFoundError(f"There are no languages beside {top}.")
