"""The line that says whether texts of requests are kept, and switches it."""

from PySide6.QtWidgets import QHBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.models.monitor.capture import MINUTES, CaptureModel
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.labels import ElidedLabel, set_text, set_tone


class CaptureLine(QWidget):
    """One line below the list of requests."""

    def __init__(self, model: CaptureModel) -> None:
        super().__init__()
        self.model = model
        self._told = ElidedLabel("", "muted")
        self.keep = button(
            tr("Keep texts for {minutes} min", minutes=MINUTES),
            model.start,
            kind="flat",
            hint=tr("Keep texts of requests and answers in the host's memory, without keys; never on disk"),
            command=f"sndr requests capture --minutes {MINUTES}",
        )
        self.forget = button(
            tr("Stop and forget"),
            model.stop,
            kind="flat",
            hint=tr("Keep no more texts, and forget those that are kept"),
            command="sndr requests capture --off",
        )
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(self._told, 1)
        line.addWidget(self.keep)
        line.addWidget(self.forget)
        model.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show what the model knows now."""
        model, state = self.model, self.model.state
        set_text(self._told, model.sentence)
        set_tone(self._told, "warn" if model.on else "muted")
        self.keep.setVisible(not model.on)
        self.forget.setVisible(model.on or (state is not None and state.requests > 0))
