"""The view-model of the start at login: the desktop's entry for the window, with a preset or without."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from engine_host.client import HostError
from engine_host.client.at_login.window_entry import (
    START_PRESET,
    WindowEntry,
    read_entry,
    remove_entry,
    write_entry,
)
from engine_host.protocol.errors import Problem
from engine_host.protocol.language import tr
from sndr_gui.host.session import Session
from sndr_gui.models.launch.presets import LaunchPresets
from sndr_gui.models.window.actions import Actions


class AtLoginModel(QObject):
    """Reads, writes and takes away the entry; presets to choose from are those that could start now.

    Signals:
        changed: the entry, a problem or the presets are new
    """

    changed = Signal()

    def __init__(self, presets: LaunchPresets) -> None:
        super().__init__()
        self._presets = presets
        self.problem: Problem | None = None
        self.entry: WindowEntry = read_entry()
        presets.rows_changed.connect(self.changed)

    def read(self) -> None:
        """Read the entry again: the desktop's own settings change it too."""
        self.entry = read_entry()
        self._presets.load_if_stale()
        self.changed.emit()

    def choices(self) -> list[tuple[str, str]]:
        """Return the presets that can be started with it, and none."""
        ready = [(row.item.preset.title, row.item.preset.id) for row in self._presets.fitting if row.ready]
        preset = self.entry.preset
        if preset and all(one != preset for _, one in ready):
            ready.append((preset, preset))
        return [(tr("no preset"), ""), *ready]

    @property
    def command(self) -> str:
        """The command that does the opposite of what is so now."""
        if self.entry.on:
            return "sndr autostart window --off"
        return "sndr autostart window"

    def switch(self, on: bool, preset: str = "") -> None:
        """Start the window at login, with a preset where one is named; or no more."""
        self.problem = None
        try:
            self.entry = write_entry(preset) if on else remove_entry()
        except HostError as error:
            self.problem = error.problem
        self.changed.emit()


class PresetAtLogin(QObject):
    """Starts the preset that the arguments of this start name, once and unless it runs already."""

    def __init__(self, session: Session, actions: Actions, arguments: Sequence[str]) -> None:
        super().__init__()
        self._session, self._actions = session, actions
        named = [one.removeprefix(START_PRESET) for one in arguments if one.startswith(START_PRESET)]
        self._preset = named[0] if named else ""
        if self._preset:
            session.connection.changed.connect(self._on_link)

    def _on_link(self) -> None:
        if not self._preset or not self._session.connection.connected:
            return
        preset, self._preset = self._preset, ""
        if all(engine.plan.preset != preset for engine in self._session.state.live):
            self._actions.start_preset(preset)
