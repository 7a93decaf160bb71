"""The card of the engines that run side by side; the chosen one is what the rest of the page is about."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QButtonGroup, QGridLayout, QLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import measured_by, theme
from sndr_gui.kit.formats import UNMEASURED, shortened
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.home.engines import EngineRow
from sndr_gui.models.home.page import HomeModel
from sndr_gui.views.widgets.buttons import button, tip
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.labels import ElidedLabel, restyle, set_text, text
from sndr_gui.views.widgets.layout import clear, column, row, show_part

# Where the name begins, behind its dot.
_INDENT = 24


class EnginesCard(Card):
    """A row for each engine: name, state, speed, and Chat, Show and Stop."""

    def __init__(
        self, model: HomeModel, open_chat: Callable[[str], None], open_engine: Callable[[str], None]
    ) -> None:
        super().__init__(tr("Engines"))
        self._model, self._open_chat, self._open_engine = model, open_chat, open_engine
        self.lines: list[_EngineLine] = []
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(12)
        self._grid.setColumnStretch(0, 1)
        self._group = QButtonGroup(self)
        self.body.addLayout(self._grid)

    def refresh(self) -> None:
        """Show the engines of now; nothing while there is only one."""
        rows = self._model.engines()
        show_part(self, bool(rows))
        if [line.id for line in self.lines] != [entry.id for entry in rows]:
            self._rebuild(rows)
        for line, entry in zip(self.lines, rows, strict=True):
            line.show_row(entry)

    def _rebuild(self, rows: tuple[EngineRow, ...]) -> None:
        focused = next((line.id for line in self.lines if line.name.hasFocus()), "")
        clear(self._grid)
        self.lines = []
        for place, entry in enumerate(rows):
            line = _EngineLine(entry.id, self._model, self._open_chat, self._open_engine)
            self._group.addButton(line.name)
            for across, part in enumerate(line.parts):
                if isinstance(part, QWidget):
                    self._grid.addWidget(part, place, across)
                else:
                    self._grid.addLayout(part, place, across)
            self.lines.append(line)
            if entry.id == focused:
                line.name.setFocus()


class _EngineLine:
    """The parts of one engine's row."""

    def __init__(
        self,
        engine: str,
        model: HomeModel,
        open_chat: Callable[[str], None],
        open_engine: Callable[[str], None],
    ) -> None:
        self.id = engine
        self._model, self._open_chat, self._open_engine = model, open_chat, open_engine
        self.name = button("", self._on_chosen, kind="flat")
        self.name.setCheckable(True)
        self.name.setIconSize(QSize(10, 10))
        self.name.setProperty("engine", "true")
        self._dot = theme.ButtonIcon(self.name, "dot", "muted", 10)
        self.about = ElidedLabel("", "muted")
        self.rate = text("", name="h2")
        self.rate.setToolTip(plain_tooltip(measured_by.NOW))
        self.rate.setAccessibleDescription(measured_by.NOW)
        self.requests = text("", "muted")
        for label in (self.rate, self.requests):
            label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            label.setMinimumWidth(90)
        self.chat = button(tr("Chat"), self._on_chat)
        self.show_engine = button(tr("Show"), self._on_show)
        self.stop = button(tr("Stop"), self._on_stop)

    @property
    def parts(self) -> tuple[QWidget | QLayout, ...]:
        """The parts of the row, from left to right."""
        below = row(self.about)
        below.setContentsMargins(_INDENT, 0, 0, 0)
        named = column(row(self.name, None), below, spacing=0)
        done = column(self.rate, self.requests, spacing=2)
        done.setContentsMargins(0, 0, 12, 0)
        return (named, done, self.chat, self.show_engine, self.stop)

    def _on_chosen(self) -> None:
        self._model.choose(self.id)

    def _on_chat(self) -> None:
        self._open_chat(self.id)

    def _on_show(self) -> None:
        self._open_engine(self.id)

    def _on_stop(self) -> None:
        self._model.stop_engine(self.id)

    def show_row(self, entry: EngineRow) -> None:
        """Show how the engine does now."""
        self.name.setText(shortened(entry.name))
        self.name.setChecked(entry.chosen)
        self.name.setAccessibleName(
            tr(
                "{name}, {state}, {rate}: show its numbers below",
                name=entry.name,
                state=entry.state,
                rate=entry.rate,
            )
        )
        self.name.setToolTip(tip(tr("Show the numbers of {name} below", name=entry.name), "", "sndr status"))
        self._dot.show_icon("dot", entry.tone)
        set_text(self.about, f"{entry.state}  ·  {entry.about}")
        set_text(self.rate, tr("{rate} now", rate=entry.rate) if entry.rate != UNMEASURED else entry.rate)
        set_text(self.requests, entry.requests)
        self.chat.setAccessibleName(tr("Chat with {name}", name=entry.name))
        self.chat.setToolTip(
            tip(
                tr("Chat with {name}", name=entry.name),
                "",
                shlex.join(["sndr", "chat", "--model", entry.name]),
            )
        )
        self.chat.setEnabled(entry.answers)
        self.show_engine.setAccessibleName(tr("Show {name}", name=entry.name))
        self.show_engine.setToolTip(tip(tr("Open Engine with {name}", name=entry.name)))
        asks = entry.asks
        if self.stop.text() != entry.stop:
            self.stop.setText(entry.stop)
            self.stop.setProperty("danger", "true" if asks else "")
            restyle(self.stop)
        self.stop.setAccessibleName(f"{entry.stop.rstrip('…')} {entry.name}")
        self.stop.setToolTip(
            tip(
                tr("Finish what {name} answers, then stop it", name=entry.name),
                "",
                shlex.join(["sndr", "stop", entry.name]),
            )
        )
        self.stop.setEnabled(entry.can_stop)
