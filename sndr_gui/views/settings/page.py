"""Settings: each value with its control, where it comes from, and the way back to its default.

What is searched is found at every level.
"""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QLineEdit, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit.look.level import Level
from sndr_gui.kit.shortcuts import keys
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.engine.installations import InstallationsModel
from sndr_gui.models.first_run.page import FirstRunModel
from sndr_gui.models.settings.at_login import AtLoginModel
from sndr_gui.models.settings.entries import Entry
from sndr_gui.models.settings.page import SettingsModel
from sndr_gui.views.engine.installations import InstallationsCard
from sndr_gui.views.settings.appearance import AppearanceCard
from sndr_gui.views.settings.chats import ChatsCard
from sndr_gui.views.settings.line import OwnLine
from sndr_gui.views.settings.mending import MendingCard
from sndr_gui.views.settings.row import SettingRow
from sndr_gui.views.settings.window_card import WindowCard
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import SegmentedControl
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import clear, rule
from sndr_gui.views.widgets.page import Page

_LEVELS = ((tr("Simple"), Level.SIMPLE), (tr("Expert"), Level.EXPERT))


class SettingsView(Page):
    """The page of settings."""

    def __init__(
        self,
        model: SettingsModel,
        installations: InstallationsModel,
        first_run: FirstRunModel,
        at_login: AtLoginModel,
    ) -> None:
        super().__init__(tr("Settings"), scrolls=True)
        self.model = model
        self.look = AppearanceCard(model)
        self.window_card = WindowCard(model, first_run, at_login)
        self.mending = MendingCard(model.mending)
        self.body.addWidget(self.mending)
        self.body.addWidget(self.look)
        self.body.addWidget(self.window_card)
        self._groups = QVBoxLayout()
        self._groups.setSpacing(14)
        self.body.addLayout(self._groups)
        self.chats = ChatsCard(model)
        self.body.addWidget(self.chats)
        self.vllm = InstallationsCard(installations)
        self.body.addWidget(self.vllm)
        self.body.addStretch(1)
        self._own = {line.entry.name: line for line in self.findChildren(OwnLine)}
        self._rows: dict[str, SettingRow] = {}
        self._rules: dict[str, QWidget] = {}
        self._cards: dict[str, Card] = {}
        self._make_search()
        model.changed.connect(self.refresh)
        model.revealed.connect(self._reveal)
        self.refresh()

    def _make_search(self) -> None:
        self.filter = QLineEdit()
        self.filter.setPlaceholderText(tr("Search settings  ({keys})", keys=keys("filter")))
        self.filter.setAccessibleName(tr("Search settings"))
        self.filter.setFixedWidth(230)
        self.filter.textChanged.connect(self._sift)
        self.level = SegmentedControl(tuple(name for name, _ in _LEVELS), tr("Level of the pages"))
        self.level.setToolTip(plain_tooltip(tr("Simple leaves out what few people need; a search finds it.")))
        for choice in self.level.buttons:
            choice.clicked.connect(self._on_level)
        self.tools.addWidget(self.level)
        self.tools.addWidget(self.filter)
        self.none = text(tr("No setting has these words."), "muted")
        self.body.insertWidget(0, self.none)

    def focus_filter(self) -> None:
        """Put the cursor into the search."""
        self.filter.setFocus()
        self.filter.selectAll()

    def _on_level(self) -> None:
        self.model.set_level(_LEVELS[self.level.place][1])

    def _sift(self) -> None:
        """Show what holds the words, or what the level has."""
        words = self.filter.text().casefold().split()
        shown: set[str] = set()
        for entry in self.model.entries():
            line, above = self._rows[entry.name], self._rules.get(entry.name)
            line.setVisible(self.model.offers(entry, words) or entry.name == self.model.wanted)
            if above is not None:
                above.setVisible(not line.isHidden() and entry.group in shown)
            if not line.isHidden():
                shown.add(entry.group)
        for group, card in self._cards.items():
            card.setVisible(group in shown)
        found = bool(shown)
        for card in (self.look, self.window_card, self.chats, self.vllm):
            card.setVisible(_holds(card, words))
            found |= not card.isHidden()
        self.none.setVisible(not found)

    def set_shown(self, shown: bool) -> None:
        if shown:
            # The pages of another host change the same look.
            self.look.refresh()
            self.window_card.read()
            self._reveal()

    def _reveal(self) -> None:
        """Bring the setting that somebody wants to change into sight, with the focus on its control."""
        wanted = self.model.wanted
        line = self._rows.get(wanted) or self._own.get(wanted)
        if line is not None and self.isVisible():
            self.filter.clear()
            self._sift()
            self.model.wanted = ""
            self.bring_into_sight(line, line.control)

    def refresh(self) -> None:
        """Show the values of now."""
        model = self.model
        self.look.refresh()
        self.window_card.refresh()
        entries = model.entries()
        set_text(self.subtitle, model.folder or tr("The engine host's settings appear when it is connected."))
        self.subtitle.setToolTip(plain_tooltip(model.places))
        if list(self._rows) != [entry.name for entry in entries]:
            self._build(entries)
        for line in self._rows.values():
            line.refresh()
        self.level.buttons[[one for _, one in _LEVELS].index(model.window.level)].setChecked(True)
        self._sift()
        self._reveal()

    def _build(self, entries: tuple[Entry, ...]) -> None:
        clear(self._groups)
        self._rows.clear()
        self._rules.clear()
        cards = self._cards
        cards.clear()
        for entry in entries:
            card = cards.get(entry.group)
            if card is None:
                card = cards[entry.group] = Card(entry.group)
                self._groups.addWidget(card)
            else:
                above = self._rules[entry.name] = rule()
                card.body.addWidget(above)
            line = SettingRow(self.model, entry)
            card.body.addWidget(line)
            self._rows[entry.name] = line


def _holds(card: Card, words: list[str]) -> bool:
    said = " ".join(label.text() for label in card.findChildren(QLabel)).casefold()
    return all(word in said for word in words)
