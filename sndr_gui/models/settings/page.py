"""The view-model of Settings: the host's settings with their provenance, and the window's look."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.errors import Problem
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Layer, ServerChoice, Setting
from engine_host.protocol.operations import table as ops
from engine_host.protocol.settings import SettingsChange
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.kit.look.choices import ThemeChoice
from sndr_gui.kit.look.level import Level
from sndr_gui.kit.look.level import choose as choose_level
from sndr_gui.kit.setting_words import word_of
from sndr_gui.kit.settings import SettingsFile, WindowSettings
from sndr_gui.models.settings.entries import ENTRIES, EXPERT, Entry
from sndr_gui.models.settings.look import LOOK_ENTRIES
from sndr_gui.models.settings.mending import MendingModel


class SettingsModel(QObject):
    """The model of Settings.

    Signals:
        changed: values or problems are new
        look_changed: the person chose another look
        revealed: a setting is to be shown, the one in `wanted`
        chats_changed: conversations are kept from now on, or not
    """

    changed = Signal()
    look_changed = Signal(object)
    revealed = Signal()
    chats_changed = Signal()

    def __init__(self, session: Session, file: SettingsFile, show: Callable[[], object]) -> None:
        """`show` opens this page."""
        super().__init__()
        self.session, self._file = session, file
        self.problems: dict[str, Problem] = {}
        self.saving: set[str] = set()
        self.wanted = ""
        self.mending = MendingModel(session, show)
        session.state.settings_changed.connect(self.changed)
        session.state.servers_changed.connect(self.changed)
        session.connection.changed.connect(self.changed)

    def entries(self) -> tuple[Entry, ...]:
        """Return the settings that this host has, the known ones first."""
        page = self.session.state.settings
        names = [setting.name for setting in page.settings] if page else []
        known = [entry for entry in ENTRIES if entry.name in names]
        listed = {entry.name for entry in known}
        more = [Entry(name, tr("More"), name, "text") for name in names if name not in listed]
        return (*known, *more)

    def offers(self, entry: Entry, words: Sequence[str]) -> bool:
        """Tell whether a setting is shown: one of this level, or one that holds all of the words."""
        if words:
            said = f"{entry.name} {entry.group} {entry.label} {entry.help} {self.provenance(entry.name)}"
            return all(word in said.casefold() for word in words)
        simple = self.window.level is Level.SIMPLE
        return not (simple and entry.name in EXPERT and self.is_default(entry.name))

    def reveal(self, name: str) -> None:
        """Show a setting among the others, as soon as it is there."""
        self.wanted = name
        self.revealed.emit()

    def setting(self, name: str) -> Setting | None:
        """Return one setting as it is resolved now."""
        return self.session.state.setting(name)

    def provenance(self, name: str) -> str:
        """Return the layer that set a value."""
        setting = self.setting(name)
        if setting is None:
            return ""
        if setting.layer is Layer.USER:
            return tr("set by you")
        return tr("default") if setting.layer is Layer.ENGINE else word_of(setting.layer.value)

    def is_default(self, name: str) -> bool:
        """Return True when nobody set this value."""
        setting = self.setting(name)
        return setting is None or setting.layer is not Layer.USER

    def command(self, name: str) -> str:
        """Return the command line that sets a value."""
        setting = self.setting(name)
        value = setting.value if setting else None
        if isinstance(value, bool):
            text = "true" if value else "false"
        elif isinstance(value, list | tuple):
            text = str(value[0]) if len(value) == 1 else json.dumps(list(value)) if value else "…"
        else:
            text = "…" if value is None else str(value)
        return shlex.join(["sndr", "settings", "set", name, text]).replace("'…'", "…")

    def own_server(self) -> tuple[str, str]:
        """Return the result of probing the user's own server, and its tone."""
        page = self.session.state.servers
        server = next((s for s in page.servers if s.choice is ServerChoice.OWN), None) if page else None
        if server is None or (not server.path and server.problem is None):
            return "", "muted"
        if server.problem is not None:
            return formats.strip_backticks(server.problem.sentence()), "bad"
        devices = ", ".join(server.devices) or "CPU"
        return tr("Works: llama.cpp {version} · {devices}", version=server.version, devices=devices), "good"

    def put(self, name: str, value: Any) -> None:
        """Set a value; None brings its default back."""
        self.saving.add(name)
        self.problems.pop(name, None)

        async def work(client: AsyncControlClient) -> None:
            changed = client.call(ops.CHANGE_SETTINGS, SettingsChange(values={name: value}))
            page = await self.session.state.take(changed)
            for warning in page.warnings:
                self.session.notices.warning("settings", warning.message)

        def done() -> None:
            self.saving.discard(name)
            self.changed.emit()

        def failed(error: HostError) -> None:
            if not error.lost:
                self.problems[name] = error.problem
            else:
                self.session.notices.error("settings", str(error))

        self.session.command("settings", work, done=done, failed=failed)
        self.changed.emit()

    def reset(self, name: str) -> None:
        """Bring a default back."""
        self.put(name, None)

    @property
    def scale_in_force(self) -> int:
        """The scale that the window was started with."""
        return self._file.started_with.scale

    @property
    def language_in_force(self) -> str:
        """The choice of language that the window was started with."""
        return self._file.started_with.language

    @property
    def window(self) -> WindowSettings:
        """The settings of the window."""
        return self._file.current

    def set_window(self, **values: Any) -> None:
        """Change settings of the window."""
        save_window_settings(self._file, self.session.notices.warning, **values)
        self.changed.emit()

    def set_level(self, level: Level) -> None:
        """Choose how much the pages offer."""
        choose_level(level)
        self.set_window(level=level)

    def set_theme(self, choice: ThemeChoice) -> None:
        """Choose a theme."""
        self.set_look("theme", choice)

    def set_own(self, name: str, value: object) -> None:
        """Change one of the window's own settings, whichever it is."""
        if name == "keep_chats":
            self.set_keep_chats(bool(value))
        elif any(entry.name == name for entry in LOOK_ENTRIES):
            self.set_look(name, value)
        else:
            self.set_window(**{name: value})

    def set_look(self, name: str, value: object, *_checked: object) -> None:
        """Change one row of `LOOK_ENTRIES`; kept, and put on at once where Qt can."""
        if value == getattr(self._file.current, name):
            return
        save_window_settings(self._file, self.session.notices.warning, **{name: value})
        self.look_changed.emit(self._file.current.look)
        self.changed.emit()

    @property
    def keep_chats(self) -> bool:
        """True while conversations of Chat are kept."""
        return self._file.current.keep_chats

    def set_keep_chats(self, keep: bool) -> None:
        """Keep conversations from now on, or not; those that are there stay."""
        if keep is self.keep_chats:
            return
        save_window_settings(self._file, self.session.notices.warning, keep_chats=keep)
        self.chats_changed.emit()
        self.changed.emit()

    @property
    def file(self) -> str:
        """The file that holds the host's settings."""
        page = self.session.state.settings
        return page.file if page else ""

    @property
    def folder(self) -> str:
        """The folder of the host's file, in a few words."""
        if not self.file:
            return ""
        folder = os.path.dirname(self.file)
        if self.session.host:
            return tr("Kept in {folder} on {host}", folder=folder, host=self.session.host)
        return tr("Kept in {folder}", folder=folder)

    @property
    def places(self) -> str:
        """The files that hold what is set here: the host's, and the window's own."""
        if not self.file:
            return ""
        look = str(self._file.path)
        # Of another machine only its host knows which files there are.
        if self.session.host or os.path.exists(self.file):
            return tr("{file}; the look in {look}", file=self.file, look=look)
        return tr("{file}, from the first change on; the look in {look}", file=self.file, look=look)


def save_window_settings(file: SettingsFile, warn: Callable[..., object], **values: Any) -> None:
    """Save values of the window's settings; a folder that cannot be written is reported and not fatal."""
    try:
        file.write(replace(file.current, **values))
    except OSError as error:
        warn("window settings", tr("The window's settings could not be saved: {error}.", error=error))
