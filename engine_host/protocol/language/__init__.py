"""Words in a person's language: one catalogue for host, window and terminal; English is the message id."""

from engine_host.protocol.language.catalogue import (
    english,
    formed,
    install,
    language,
    measured,
    name_settings,
    ntr,
    percent,
    sending,
    tr,
    translated,
    unit,
    written,
)
from engine_host.protocol.language.choice import LANGUAGES, PSEUDO, SYSTEM, chosen_language

__all__ = [
    "LANGUAGES",
    "PSEUDO",
    "SYSTEM",
    "chosen_language",
    "english",
    "formed",
    "install",
    "language",
    "measured",
    "name_settings",
    "ntr",
    "percent",
    "sending",
    "tr",
    "translated",
    "unit",
    "written",
]
