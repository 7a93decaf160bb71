"""The window's own settings: look, geometry, last page; everything else belongs to the engine host."""

import json
import os
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from engine_host.client import read_text
from engine_host.protocol.language import LANGUAGES, PSEUDO, SYSTEM
from sndr_gui.kit.atomic_file import write_atomically
from sndr_gui.kit.look.choices import SCALES, Accent, Density, Look, Motion, ThemeChoice
from sndr_gui.kit.look.level import Level

LARGEST = 16 << 20
MOST_RECENT, LONGEST_RECENT = 12, 200
"""Of the commands that were used last: how many are kept, and of how many letters."""


_LOOK = {"theme": ThemeChoice, "accent": Accent, "density": Density, "motion": Motion}


class OnClose(StrEnum):
    """The fate of engines that would end with the window."""

    ASK = "ask"
    KEEP = "keep"
    END = "end"


@dataclass(frozen=True)
class WindowSettings:
    """The settings of the window; not a pydantic model, which would delay the first paint by 170 ms."""

    theme: ThemeChoice = ThemeChoice.SYSTEM
    accent: Accent = Accent.BLUE
    density: Density = Density.COMFORTABLE
    motion: Motion = Motion.SYSTEM
    scale: int = 100
    language: str = SYSTEM
    page: str = "home"
    welcome: bool = False
    geometry: str = ""
    keep_chats: bool = True
    chat_history_shown: bool = False
    sidebar_folded: bool = False
    recent_commands: tuple[str, ...] = ()
    on_close: OnClose = OnClose.ASK
    level: Level = Level.EXPERT
    tray: bool = False
    desktop_notices: bool = True
    chat: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def look(self) -> Look:
        """The part that is put on while the window is open; the scale needs a new start."""
        return Look(self.theme, self.accent, self.density, self.motion)

    @classmethod
    def parse(cls, text: str) -> "WindowSettings":
        """Parse the settings in a JSON text; an unknown name is ignored, so that an older window starts.

        Raises ValueError when the text is not such settings.
        """
        try:
            raw = json.loads(text)
        except RecursionError as error:
            raise ValueError("it is nested too deep") from error
        if not isinstance(raw, dict):
            raise ValueError("not an object")
        for name in ("keep_chats", "chat_history_shown"):
            if not isinstance(raw.get(name, False), bool):
                raise ValueError(f"{name} is neither true nor false")
        known = {entry.name for entry in fields(cls)}
        values = {name: value for name, value in raw.items() if name in known}
        for name in ("page", "geometry"):
            if not isinstance(values.get(name, ""), str):
                raise ValueError(f"{name} is not text")
        for name in ("sidebar_folded", "tray", "desktop_notices", "welcome"):
            if not isinstance(values.get(name, False), bool):
                raise ValueError(f"{name} is neither true nor false")
        if not isinstance(values.get("chat", {}), dict):
            raise ValueError("chat is not an object")
        own = values.get("keys", {})
        if not isinstance(own, dict) or not all(isinstance(pressed, str) for pressed in own.values()):
            raise ValueError("keys are not texts by name")
        recent = values.get("recent_commands", [])
        if not isinstance(recent, list) or not all(isinstance(key, str) for key in recent):
            raise ValueError("recent_commands are not texts")
        values["recent_commands"] = tuple(key[:LONGEST_RECENT] for key in recent[:MOST_RECENT])
        values["on_close"] = OnClose(values.get("on_close", "ask"))
        values["level"] = Level(values.get("level", "expert"))
        for name, choices in _LOOK.items():
            if name in values:
                values[name] = choices(values[name])
        scale = values.get("scale", 100)
        if isinstance(scale, bool) or scale not in SCALES:
            raise ValueError(f"scale is none of {SCALES}")
        if values.get("language", SYSTEM) not in (SYSTEM, *LANGUAGES, PSEUDO):
            raise ValueError("language is none that there is")
        return cls(**values)


@dataclass(frozen=True)
class Damage:
    """Fault of the file of the settings, told and mended entry by entry.

    `line` is None where none is at fault. `kept`: the settings of a repair, with what is right in the file;
    None where nothing can be read out of it.
    """

    what: str
    line: int | None
    kept: WindowSettings | None


def _damage(text: str, error: ValueError) -> Damage:
    """Return what is wrong with a text, entry by entry."""
    if isinstance(error, json.JSONDecodeError):
        return Damage(error.msg, error.lineno, None)
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raw = None
    if not isinstance(raw, dict):
        return Damage(str(error), None, None)
    right: dict[str, Any] = {}
    wrong = ""
    for name, value in raw.items():
        try:
            WindowSettings.parse(json.dumps({name: value}))
            right[name] = value
        except ValueError:
            wrong = wrong or name
    place = text.find(json.dumps(wrong))
    line = text.count("\n", 0, place) + 1 if wrong and place >= 0 else None
    return Damage(str(error), line, WindowSettings.parse(json.dumps(right)))


class SettingsFile:
    """Reads and writes the settings.

    A damaged file stays as it is, and nothing is written, until a person says what becomes of it; `damage` is
    what is wrong. `is_new`: there was none, so it is the very first start. `started_with`: those of then;
    another scale or language waits for the next start.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.damage: Damage | None = None
        self.is_new = False
        self.current = self._read()
        self.started_with = self.current

    @property
    def path(self) -> Path:
        """The file itself."""
        return self._path

    @property
    def folder(self) -> Path:
        """The folder of the window's own files."""
        return self._path.parent

    def _read(self) -> WindowSettings:
        try:
            text = read_text(self._path, LARGEST)
        except FileNotFoundError:
            self.is_new = True
            return WindowSettings()
        except OSError:
            return WindowSettings()
        except ValueError as error:
            self.damage = Damage(str(error), None, None)
            return WindowSettings()
        try:
            return WindowSettings.parse(text)
        except ValueError as error:
            self.damage = _damage(text, error)
            return WindowSettings()

    def write(self, settings: WindowSettings) -> None:
        """Keep these settings; beside a damaged file only until the window ends.

        Raises OSError when the folder cannot be written.
        """
        self.current = settings
        if self.damage is None:
            write_atomically(self._path, json.dumps(asdict(settings), indent=2))

    def set_aside(self, repair: bool = False) -> Path:
        """Move the damaged file beside its place, and write the settings of now, or those of the repair.

        Returns where it lies. Raises OSError.
        """
        aside = self._path.with_name(self._path.name + ".damaged")
        os.replace(self._path, aside)
        kept = self.damage.kept if self.damage is not None else None
        self.damage = None
        self.write(kept if repair and kept is not None else self.current)
        return aside
