"""The choice of the engine that a page shows; there is nothing to choose while there is only one."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QWidget

from engine_host.protocol.engines import Engine
from engine_host.protocol.language import tr
from sndr_gui.host.state import HostState
from sndr_gui.kit import theme
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.engine.choice import EngineEntry, entries
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import row, show_part


class EngineChoice(QWidget):
    """Offers the engines by name, kind and state; what is chosen here is what every page is about.

    `ended` offers the starts that ended too. `shown` and `choose` are for a page with an engine of its own.
    """

    def __init__(
        self,
        state: HostState,
        *,
        label: str = tr("Engine"),
        name: str = tr("Engine shown"),
        ended: bool = False,
        brief: bool = False,
        shown: Callable[[], Engine | None] | None = None,
        choose: Callable[[Engine], object] | None = None,
    ) -> None:
        super().__init__()
        self._state, self._ended, self._brief = state, ended, brief
        self._shown = shown or (lambda: state.engine)
        self._choose = choose or state.choose
        self._known: tuple[EngineEntry, ...] = ()
        self.box = ChoiceBox(name)
        # A name comes from outside, and may be of any length.
        self.box.setMinimumWidth(100 if brief else 160)
        self.box.setIconSize(QSize(10, 10))
        # As wide as its longest line where there is room: starts of one model differ only at their ends.
        self.box.setSizeAdjustPolicy(ChoiceBox.SizeAdjustPolicy.AdjustToContents)
        what = (
            tr("Show another engine, or a start that failed")
            if ended
            else tr("Show another engine that runs")
        )
        self.box.setToolTip(plain_tooltip(tr("{what}\nsndr status", what=what)))
        self.box.activated.connect(self._on_chosen)
        self.setLayout(row(text(label, "muted"), self.box, None) if label else row(self.box))
        state.engines_changed.connect(self.refresh)
        theme.notifier.changed.connect(self._paint)
        self.refresh()

    def refresh(self) -> None:
        """Offer the engines of now."""
        shown = self._shown()
        found = entries(self._state, shown, ended=self._ended, brief=self._brief)
        if found != self._known:
            self._known = found
            self.box.fill([(entry.title, entry.id) for entry in found], shown.id if shown else None)
            self._paint()
        if shown is not None:
            self.box.setCurrentIndex(self.box.findData(shown.id))
        show_part(self, len(found) > 1)

    def _paint(self) -> None:
        for place, entry in enumerate(self._known):
            self.box.setItemIcon(place, theme.icon("dot", entry.tone, 10))

    def _on_chosen(self, place: int) -> None:
        engine = self._state.engines.get(str(self.box.itemData(place)))
        if engine is not None:
            self._choose(engine)
        self.refresh()
