"""Settings: each value with its control, where it comes from, and the way back to its default."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout

from engine_host.client.language import tr
from sndr_gui.models.engine.installations import InstallationsModel
from sndr_gui.models.first_run.page import FirstRunModel
from sndr_gui.models.settings.at_login import AtLoginModel
from sndr_gui.models.settings.entries import Entry
from sndr_gui.models.settings.page import SettingsModel
from sndr_gui.views.engine.installations import InstallationsCard
from sndr_gui.views.settings.appearance import AppearanceCard
from sndr_gui.views.settings.chats import ChatsCard
from sndr_gui.views.settings.mending import MendingCard
from sndr_gui.views.settings.row import SettingRow
from sndr_gui.views.settings.window_card import WindowCard
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.labels import set_text
from sndr_gui.views.widgets.layout import clear, rule
from sndr_gui.views.widgets.page import Page


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
        self._rows: dict[str, SettingRow] = {}
        model.changed.connect(self.refresh)
        model.revealed.connect(self._reveal)
        self.refresh()

    def set_shown(self, shown: bool) -> None:
        if shown:
            # The pages of another host change the same look.
            self.look.refresh()
            self.window_card.read()
            self._reveal()

    def _reveal(self) -> None:
        """Bring the setting that somebody wants to change into sight, with the focus on its control."""
        line = self._rows.get(self.model.wanted)
        if line is not None and self.isVisible():
            self.model.wanted = ""
            self.bring_into_sight(line, line.control)

    def refresh(self) -> None:
        """Show the values of now."""
        model = self.model
        self.look.refresh()
        self.window_card.refresh()
        entries = model.entries()
        set_text(self.subtitle, model.places or tr("The engine host's settings appear when it is connected."))
        if list(self._rows) != [entry.name for entry in entries]:
            self._build(entries)
        for line in self._rows.values():
            line.refresh()
        self._reveal()

    def _build(self, entries: tuple[Entry, ...]) -> None:
        clear(self._groups)
        self._rows.clear()
        cards: dict[str, Card] = {}
        for entry in entries:
            card = cards.get(entry.group)
            if card is None:
                card = cards[entry.group] = Card(entry.group)
                self._groups.addWidget(card)
            else:
                card.body.addWidget(rule())
            line = SettingRow(self.model, entry)
            card.body.addWidget(line)
            self._rows[entry.name] = line
