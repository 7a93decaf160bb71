"""Words in a person's language: one catalogue for window and command line; English is the message id."""

from engine_host.client.language.catalogue import install, language, ntr, tr, translated
from engine_host.client.language.choice import LANGUAGES, PSEUDO, SYSTEM, chosen_language

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
]
