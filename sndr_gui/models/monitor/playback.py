"""A recorded trace that the host plays: which one, and its end."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from PySide6.QtCore import QObject, Signal

from engine_host.client.asynchronous import AsyncControlClient
from engine_host.protocol.host import RECORDED
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from engine_host.protocol.settings import SettingsChange
from engine_host.protocol.telemetry import RECORDED_PREFIX, Sample
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.models.monitor.lines import Line

SETTING = "host.gpu_trace"


def told_of(lines: Iterable[Line]) -> str:
    """Return what a title adds for lines of a recorded trace; nothing where there are none."""
    played = any(line.name.startswith(RECORDED_PREFIX) and line.latest is not None for line in lines)
    return f" ({RECORDED})" if played else ""


class PlaybackModel(QObject):
    """The trace that is played.

    Signals:
        changed: another trace is played, or none
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.playing = False
        session.state.sampled.connect(self._on_sample)
        session.state.settings_changed.connect(self.changed)

    @property
    def file(self) -> str:
        """The file that is to be played; empty for none."""
        setting = self.session.state.setting(SETTING)
        return str(setting.value) if setting is not None and setting.value else ""

    @property
    def said(self) -> str:
        """The trace that is played, or that it cannot be; empty where nothing is to be."""
        if not self.file:
            return ""
        name = PurePath(self.file).name
        if self.playing:
            return tr("GPUs of {name}: {recorded}", name=name, recorded=RECORDED)
        return formats.strip_backticks(tr("{name} is not played; `sndr telemetry check` says why", name=name))

    def stop(self) -> None:
        """Play nothing any more."""

        async def work(client: AsyncControlClient) -> None:
            state = self.session.state
            await state.take(client.call(ops.CHANGE_SETTINGS, SettingsChange(values={SETTING: None})))

        self.session.command("stop playing", work)

    def _on_sample(self, sample: Sample) -> None:
        playing = any(name.startswith(RECORDED_PREFIX) for name in sample.values)
        if playing != self.playing:
            self.playing = playing
            self.changed.emit()
