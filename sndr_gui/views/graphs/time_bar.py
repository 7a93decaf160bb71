"""The scrubber through the past, the words that say where one is, and the way back."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import theme
from sndr_gui.kit.shortcuts import keys
from sndr_gui.models.window.time_travel import STEPS, TimeTravel
from sndr_gui.views.graphs.card import axis_margins
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.labels import ElidedLabel, set_text
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.value_slider import INSET, MarkedSlider


class TimeBar(QWidget):
    """One scrubber for all pages; `also` adds what happened last before the moment.

    `words` are the moment in words and the way back: the page gives them a place.
    """

    def __init__(self, model: TimeTravel, page: QWidget, also: Callable[[], str] | None = None) -> None:
        super().__init__()
        self.model = model
        self._also = also
        self.slider = MarkedSlider()
        self.slider.setRange(0, STEPS)
        self.slider.setPageStep(STEPS // 20)
        self.slider.setSingleStep(STEPS // 200)
        self.slider.setAccessibleName(tr("Moment that is shown"))
        self.slider.setToolTip(
            tip(
                tr("Go back in time: graphs, requests and logs show that moment; the right end is now"),
                "Left",
            )
        )
        self.slider.valueChanged.connect(model.scrub)
        self.said = ElidedLabel("", "warn")
        self.back = button(
            tr("Back to now"), model.back, hint=tr("Look at what happens now ({keys})", keys=keys("now"))
        )
        self.words = row(self.said, self.back)
        self.words.setStretchFactor(self.said, 1)
        self._line = row(self.slider)
        self.setLayout(self._line)
        # Only while there is something to leave: Esc is other things too.
        self._leave = QShortcut(QKeySequence(keys("now")), page)
        self._leave.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self._leave.activated.connect(model.back)
        model.changed.connect(self.refresh)
        self.refresh()

    def place_over_graphs(self) -> None:
        """Have the groove begin and end where the time axis of cards with graphs below it does."""
        self._stand_over_graphs()
        theme.notifier.density_changed.connect(self._stand_over_graphs)

    def _stand_over_graphs(self) -> None:
        left, right = axis_margins()
        self._line.setContentsMargins(left - INSET, 0, right - INSET, 0)

    def place_beside_words(self) -> None:
        """Put the words and the way back beside the slider, where there is no graph to stand over."""
        self._line.addLayout(self.words)
        self._line.setStretchFactor(self.slider, 3)
        self._line.setStretchFactor(self.words, 4)

    def refresh(self) -> None:
        """Show the moment."""
        past = self.model.at is not None
        self.slider.blockSignals(True)
        self.slider.setValue(self.model.place)
        self.slider.blockSignals(False)
        also = self._also() if past and self._also is not None else ""
        set_text(self.said, "  ·  ".join(filter(None, (self.model.said, also))) if past else tr("now"))
        self.said.setProperty("tone", "warn" if past else "muted")
        self.said.style().polish(self.said)
        self.slider.setAccessibleDescription(self.model.said or tr("now"))
        self.back.setEnabled(past)
        self._leave.setEnabled(past)
