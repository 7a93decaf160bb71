"""Words in a person's language: one catalogue for host, window and terminal; English is the message id."""

from engine_host.protocol.language.catalogue import install, language, ntr, tr, translated, written
from engine_host.protocol.language.choice import LANGUAGES, PSEUDO, SYSTEM, chosen_language

__all__ = [
    "LANGUAGES",
    "PSEUDO",
    "SYSTEM",
    "chosen_language",
    "install",
    "language",
    "ntr",
    "tr",
    "translated",
    "written",
]
