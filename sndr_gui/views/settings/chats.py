"""The card of Chat's conversations: whether they are kept, where, and the command that deletes them."""

from __future__ import annotations

from PySide6.QtWidgets import QCheckBox

from engine_host.protocol.language import tr
from sndr_gui.models.settings.look import window_entry
from sndr_gui.models.settings.page import SettingsModel
from sndr_gui.views.settings.line import OwnLine
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import text

_OFF = tr("Switched off, new ones are forgotten with the window. This command deletes those that are there:")


class ChatsCard(Card):
    """The switch of the history."""

    def __init__(self, model: SettingsModel) -> None:
        super().__init__(tr("Chat"))
        self._model = model
        self.keep = QCheckBox()
        self.keep.setAccessibleName(tr("Keep conversations of Chat"))
        self.keep.toggled.connect(model.set_keep_chats)
        entry = window_entry("keep_chats")
        self.body.addWidget(OwnLine(entry, self.keep, text(f"{entry.help} {_OFF}", "muted", wrap=True)))
        self.body.addWidget(CopyField("sndr chats remove --all", tr("equivalent command")))
        model.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show the switch as it is."""
        self.keep.setChecked(self._model.keep_chats)
