"""The line of Monitor that says that a recorded trace is played."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.monitor.playback import PlaybackModel
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.labels import ElidedLabel, set_text, set_tone
from sndr_gui.views.widgets.layout import row, show_part


class PlaybackLine(QWidget):
    """Says whose figures these are, with the way to end it; hidden while nothing is to be played."""

    def __init__(self, model: PlaybackModel) -> None:
        super().__init__()
        self.model = model
        self.said = ElidedLabel("", "warn")
        self.stop = button(
            tr("Stop playing"),
            model.stop,
            hint=tr("Stop the recorded trace"),
            command="sndr telemetry stop",
        )
        line = row(self.said, self.stop)
        line.setStretchFactor(self.said, 1)
        line.setContentsMargins(0, 0, 0, 0)
        self.setLayout(line)
        model.changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        said = self.model.said
        set_text(self.said, said)
        set_tone(self.said, "accent" if self.model.playing else "warn")
        self.said.setToolTip(plain_tooltip(self.model.file))
        show_part(self, bool(said))
