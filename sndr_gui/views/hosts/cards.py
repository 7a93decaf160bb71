"""The hosts as cards, as many beside each other as have room."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import measured_by
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.hosts.cards import HostCard
from sndr_gui.models.hosts.page import HostsModel
from sndr_gui.models.hosts.words import THIS_MACHINE
from sndr_gui.views.engine.stages import JobView
from sndr_gui.views.hosts.actions import HostButtons
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.labels import ElidedLabel, badge, set_text, set_tone, text
from sndr_gui.views.widgets.layout import clear, room_of
from sndr_gui.views.widgets.problems import ProblemBox

_LEAST = 420
_GAP = 14
# Beside each other: what is short stands in two columns, what is long in a line of its own.
_GPUS, _SPEED, _MODELS, _FACTS, _LAST = (
    tr("GPUs"),
    tr("Decode now"),
    tr("Models"),
    tr("Facts"),
    tr("Last event"),
)
_PLACES = {_GPUS: (0, 0), _SPEED: (0, 2), _MODELS: (1, 0), _FACTS: (1, 2), _LAST: (2, 0)}


class HostCards(QWidget):
    """Cards in columns of at least a readable width."""

    def __init__(self, model: HostsModel) -> None:
        super().__init__()
        self._model = model
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(_GAP)
        self._columns = 0
        self.cards: dict[str, HostCardView] = {}

    def show_cards(self, cards: tuple[HostCard, ...]) -> None:
        """Show the hosts of now."""
        names = [card.name for card in cards]
        if names != list(self.cards):
            clear(self._grid)
            self.cards = {name: HostCardView(self._model, name) for name in names}
            self._place()
        for card in cards:
            self.cards[card.name].show_card(card)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._wanted() != self._columns:
            self._place()

    def _wanted(self) -> int:
        return max(1, min((room_of(self) + _GAP) // (_LEAST + _GAP), max(2, len(self.cards))))

    def _place(self) -> None:
        before, self._columns = self._columns, self._wanted()
        for number, card in enumerate(self.cards.values()):
            # Taken out by `takeAt` its item would live on and, as the card's first, be told of each change of
            # its height in the place of the item that the grid asks.
            self._grid.removeWidget(card)
            self._grid.addWidget(card, number // self._columns, number % self._columns)
        for column in range(max(before, self._columns)):
            self._grid.setColumnStretch(column, 1 if column < self._columns else 0)


class HostCardView(Card):
    """One host: its state, what it has and does; a click, or its button, opens everything else."""

    def __init__(self, model: HostsModel, name: str) -> None:
        self._state = badge("")
        super().__init__(name or THIS_MACHINE, self._state)
        self.body.setSpacing(8)
        self._model, self._name = model, name
        self._about = ElidedLabel("", "muted")
        self._sentence = text("", "muted", wrap=True)
        self._problem = ProblemBox()
        self._values: dict[str, ElidedLabel] = {}
        facts = QGridLayout()
        facts.setHorizontalSpacing(12)
        facts.setVerticalSpacing(4)
        for caption, (line, column) in _PLACES.items():
            self._values[caption] = ElidedLabel("")
            facts.addWidget(text(caption, "muted"), line, column)
            facts.addWidget(self._values[caption], line, column + 1, 1, 3 if line == 2 else 1)
        facts.setColumnStretch(1, 3)
        facts.setColumnStretch(3, 2)
        # This machine is neither connected nor opened: the other pages are about it.
        others = ("open", "connect", "retry", "install", "start", "update", "show", "disconnect")
        self.buttons = HostButtons(model, name, others if name else ("show",))
        self._job = JobView(tr("change of the host"), dismiss=True)
        self._job.cancel.clicked.connect(self._on_cancel)
        self._job.hide()
        for part in (self._about, self._sentence, self._problem):
            self.body.addWidget(part)
        self.body.addLayout(facts)
        self.body.addWidget(self._job)
        self.body.addStretch(1)
        self.body.addWidget(self.buttons)
        if name:
            self.setCursor(Qt.CursorShape.PointingHandCursor)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        # Who takes the press gets the release.
        event.setAccepted(bool(self._name) and event.button() is Qt.MouseButton.LeftButton)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._name and self.rect().contains(event.position().toPoint()):
            self._model.open(self._name)

    def show_card(self, card: HostCard) -> None:
        """Show a host as it is now."""
        set_text(self._state, card.word)
        set_tone(self._state, card.tone)
        set_text(self._about, card.about)
        set_text(self._sentence, card.sentence)
        self._sentence.setVisible(bool(card.sentence) and card.problem is None)
        self._problem.setVisible(card.problem is not None)
        if card.problem is not None:
            self._problem.show_problem(card.problem)
        values = {
            _GPUS: card.gpus,
            _MODELS: card.models,
            _SPEED: card.speed,
            _LAST: card.last or tr("none yet"),
            _FACTS: card.age,
        }
        for caption, value in values.items():
            set_text(self._values[caption], value)
            self._values[caption].setAccessibleName(f"{caption}: {value}")
        self._values[_SPEED].setToolTip(plain_tooltip(measured_by.NOW))
        self._values[_GPUS].setToolTip(plain_tooltip(card.about_gpus))
        self._values[_GPUS].setAccessibleDescription(card.about_gpus)
        self.setAccessibleName(f"{card.title}: {card.word}")
        job = self._model.job(self._name) if self._name else None
        self._job.setVisible(job is not None)
        if job is not None:
            self._job.show_job(job, self._model.pending(f"cancel {job.id}"))
        self.buttons.show_card(card)

    def _on_cancel(self) -> None:
        if (job := self._model.job(self._name)) is not None:
            self._model.cancel(job.id)
