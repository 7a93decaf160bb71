"""The words of the table of settings and of the protocol's values, in the language of the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine_host.protocol.language import translated

if TYPE_CHECKING:
    from engine_host.protocol.engine_settings.row import EngineSetting


def caption_of(setting: EngineSetting) -> str:
    """Return the caption of a setting."""
    return translated(setting.caption)


def spoken_of(setting: EngineSetting) -> str:
    """Return the name of a setting for screen readers."""
    return f"{translated(setting.caption)}: {translated(setting.help)}"


def word_of(value: str) -> str:
    """Return a value of the protocol, such as a state, as a word; one that is not known stays as it is."""
    return translated(str(value))
