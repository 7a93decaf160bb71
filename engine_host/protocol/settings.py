"""The program's settings, each with the layer that set it."""

from typing import Any, Literal

from pydantic import Field

from engine_host.protocol.base import Command, Wire
from engine_host.protocol.errors import Problem
from engine_host.protocol.launch.plans import Finding, Layer, Setting

__all__ = ["Layer", "MendSettings", "Setting", "SettingPage", "SettingsChange", "SettingsRepair"]


class SettingPage(Wire):
    """All settings as resolved now, and the file that holds the user's.

    `warnings` answers a change: what was saved and means nothing now. `problem`: the file is wrong there, and
    what of it is right is used; the defaults stand for the rest, as they do for the whole endpoint where a
    value of it is wrong.
    """

    seq: int
    file: str
    settings: tuple[Setting, ...]
    warnings: tuple[Finding, ...] = ()
    problem: Problem | None = None


class SettingsChange(Command):
    """Values to set; None removes the user's value, so that the default holds again."""

    values: dict[str, Any] = Field(min_length=1)


class SettingsRepair(Wire):
    """The change that a repair would make; no `diff` where the file is right, or cannot be repaired."""

    file: str
    problem: Problem | None = None
    diff: str = ""


class MendSettings(Command):
    """The way to mend the file: repair it, set it aside, or read it again after it was edited.

    A repair keeps the file as it was beside it.
    """

    how: Literal["repair", "set_aside", "read_again"]
