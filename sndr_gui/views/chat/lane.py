"""One column of a conversation: its messages, and with two models its head."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from engine_host.protocol.engines import Engine
from engine_host.protocol.language import tr
from sndr_gui.models.chat.lane import Lane
from sndr_gui.models.chat.page import ChatModel
from sndr_gui.views.chat.message import MessageView
from sndr_gui.views.engine.choice import EngineChoice
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.copying import copy
from sndr_gui.views.widgets.layout import MARGIN, column, row, scrolling

WIDTH = 820
_AT_ONCE = 4
"""Messages of a kept conversation that are made in one go; then the window has its turn."""


class LaneView(QWidget):
    """Shows the messages with one model, and follows the end while somebody looks at it.

    Signals:
        changed: messages came or went
    """

    changed = Signal()

    def __init__(self, model: ChatModel, lane: Lane, number: int, several: bool) -> None:
        super().__init__()
        self.model, self.lane = model, lane
        self.views: list[MessageView] = []
        self._lines = QVBoxLayout()
        self._lines.setSpacing(18)
        inner = QWidget()
        inner.setObjectName("canvas")
        inner.setMaximumWidth(WIDTH)
        inner.setLayout(column(self._lines, None))
        canvas = QWidget()
        canvas.setObjectName("canvas")
        around = QHBoxLayout(canvas)
        # Outside it is the page's margin, between two columns half of a gap each.
        self._sides = (MARGIN, MARGIN) if not several else (MARGIN, 12) if number == 1 else (12, MARGIN)
        around.setContentsMargins(self._sides[0], 4, self._sides[1], 4)
        around.addStretch(1)
        around.addWidget(inner, 100)
        around.addStretch(1)
        self.area = scrolling(canvas)
        self.area.setAccessibleName(
            tr("Conversation, model {number}", number=number) if several else tr("Conversation")
        )
        self._bar = self.area.verticalScrollBar()
        self._bar.rangeChanged.connect(self._on_grown)
        self._bar.valueChanged.connect(self._on_scrolled)
        self._follow = True
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(8)
        self.head = self._make_head(number) if several else None
        if self.head is not None:
            outer.addWidget(self.head)
        outer.addWidget(self.area, 1)
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(0)
        self._later.timeout.connect(self._make_more)
        lane.added.connect(self._on_added)
        lane.appended.connect(self._on_appended)
        lane.reasoned.connect(self._on_reasoned)
        lane.message_changed.connect(self._on_message)
        lane.cut.connect(self._on_cut)
        lane.busy_changed.connect(self.refresh)
        self._make_more()

    def _make_head(self, number: int) -> QWidget:
        self.choice = EngineChoice(
            self.model.session.state,
            label="",
            name=f"Model {number}",
            brief=True,
            shown=self._shown_engine,
            choose=self._on_choose,
        )
        self.stop = button(
            tr("Stop"), self.lane.stop, icon="square", hint=tr("Stop this answer and keep its text")
        )
        self.stop.setAccessibleName(tr("Stop model {number}", number=number))
        hint = tr("Go on with this model alone; the other's answers become a conversation of their own")
        self.alone = button(tr("Only this"), self._on_alone, kind="flat", hint=hint)
        self.alone.setAccessibleName(tr("Go on with model {number} alone", number=number))
        head = QWidget()
        line = row(self.choice, None, self.stop, self.alone)
        line.setContentsMargins(self._sides[0], 0, self._sides[1], 0)
        head.setLayout(line)
        return head

    def _shown_engine(self) -> Engine | None:
        return self.lane.partner.engine

    def _on_choose(self, engine: Engine) -> None:
        self.model.choose(engine, self.lane)

    def _on_alone(self) -> None:
        self.model.go_on_alone(self.lane)

    # Messages.

    def _make_more(self) -> None:
        """Make the views of messages that were there before, a few at a time."""
        made = 0
        while len(self.views) < len(self.lane.path) and made < _AT_ONCE:
            self._make(len(self.views))
            made += 1
        if len(self.views) < len(self.lane.path):
            self._later.start()
        if made:
            self.refresh()
            self.changed.emit()

    def _make(self, place: int) -> None:
        view = MessageView(self.lane.messages[place], narrow=self.head is not None)
        view.regenerate_wanted.connect(self._on_regenerate)
        view.edit_wanted.connect(self._on_edit)
        view.curl_wanted.connect(self._on_curl)
        view.sibling_wanted.connect(self._on_sibling)
        view.link_chosen.connect(self._on_link)
        view.set_branch(*self.lane.siblings(place))
        self.views.append(view)
        self._lines.addWidget(view)

    def _on_added(self, place: int) -> None:
        if place == len(self.views):
            self._make(place)
            self.refresh()
            self.changed.emit()
        elif not self._later.isActive():
            self._later.start()

    def _on_cut(self, place: int) -> None:
        for view in self.views[place:]:
            self._lines.removeWidget(view)
            view.hide()
            view.deleteLater()
        del self.views[place:]
        self.changed.emit()

    def _on_appended(self, place: int, piece: str) -> None:
        if place < len(self.views):
            self.views[place].append_text(piece)

    def _on_reasoned(self, place: int, piece: str) -> None:
        if place < len(self.views):
            self.views[place].append_reasoning(piece)

    def _on_message(self, place: int) -> None:
        if place < len(self.views):
            self.views[place].refresh()
            self.views[place].set_branch(*self.lane.siblings(place))

    def refresh(self) -> None:
        """Offer what can be done now."""
        model = self.model
        free, can_ask = not model.busy, model.available
        last = len(self.views) - 1
        for place, view in enumerate(self.views):
            # Side by side, what comes after an answer is in both columns: only the last is asked for anew.
            view.set_free(free, can_ask and (place == last or self.head is None))
        if self.head is not None:
            self.choice.refresh()
            self.choice.setVisible(True)
            self.choice.setEnabled(free)
            self.stop.setVisible(self.lane.busy)
            self.alone.setVisible(free)

    def follow(self) -> None:
        """Stay at the end from now on."""
        self._follow = True
        self._to_end()

    # Wishes.

    def _place_of_sender(self) -> int:
        view = self.sender()
        return self.views.index(view) if isinstance(view, MessageView) and view in self.views else -1

    def _on_regenerate(self) -> None:
        if (place := self._place_of_sender()) >= 0:
            self._follow = True
            self.model.regenerate(self.lane, place)

    def _on_edit(self) -> None:
        if (place := self._place_of_sender()) >= 0:
            self.model.edit(self.lane, place)

    def _on_sibling(self, step: int) -> None:
        if (place := self._place_of_sender()) >= 0:
            self._follow = False
            self.lane.show_sibling(place, step)

    def _on_curl(self) -> None:
        if (place := self._place_of_sender()) >= 0:
            copy(self.lane.as_curl(place, self.model.options))
            self.model.session.notices.info("curl", tr("The curl command is copied."))

    def _on_link(self, address: str) -> None:
        self.model.session.notices.info(
            "link",
            tr("The answer links to {address}", address=address),
            action_text=tr("Copy"),
            action=lambda: copy(address),
        )

    def _on_grown(self, _low: int, high: int) -> None:
        if self._follow:
            self._bar.setValue(high)
            # A layout that is still settling moves the end once more.
            QTimer.singleShot(0, self._bar, self._to_end)

    def _to_end(self) -> None:
        if self._follow:
            self._bar.setValue(self._bar.maximum())

    def _on_scrolled(self, value: int) -> None:
        self._follow = value >= self._bar.maximum() - 40
