"""The catalogue of `engine_host.protocol.language`, for those who show what it says."""

from engine_host.protocol.language import (
    LANGUAGES,
    PSEUDO,
    SYSTEM,
    chosen_language,
    install,
    language,
    ntr,
    tr,
    translated,
    written,
)

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
