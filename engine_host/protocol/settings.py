"""The program's settings, each with the layer that set it."""

from typing import Any

from pydantic import Field

from engine_host.protocol.base import Command, Wire
from engine_host.protocol.launch.plans import Finding, Layer, Setting

__all__ = ["Layer", "Setting", "SettingPage", "SettingsChange"]


class SettingPage(Wire):
    """All settings as resolved now, and the file that holds the user's.

    `warnings` answers a change: what was saved and means nothing now.
    """

    seq: int
    file: str
    settings: tuple[Setting, ...]
    warnings: tuple[Finding, ...] = ()


class SettingsChange(Command):
    """Values to set; None removes the user's value, so that the default holds again."""

    values: dict[str, Any] = Field(min_length=1)
