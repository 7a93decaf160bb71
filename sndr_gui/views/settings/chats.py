"""The card of Chat's conversations: whether they are kept, where, and the command that deletes them."""

from __future__ import annotations

from PySide6.QtWidgets import QCheckBox

from engine_host.protocol.language import tr
from sndr_gui.models.settings.page import SettingsModel
from sndr_gui.views.widgets.cards import Card
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import column, row

_ABOUT = tr(
    "In files of this machine that only you can read, the newest 500; nothing is "
    "sent anywhere. Switched off, new ones are forgotten with the window. This "
    "command deletes those that are there:"
)


class ChatsCard(Card):
    """The switch of the history."""

    def __init__(self, model: SettingsModel) -> None:
        super().__init__(tr("Chat"))
        self._model = model
        self.keep = QCheckBox()
        self.keep.setAccessibleName(tr("Keep conversations of Chat"))
        self.keep.toggled.connect(model.set_keep_chats)
        about = column(text(tr("Keep conversations")), text(_ABOUT, "muted", wrap=True), spacing=2)
        self.body.addLayout(row(about, self.keep, spacing=24))
        self.body.addWidget(CopyField("sndr chats remove --all", tr("equivalent command")))
        model.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show the switch as it is."""
        self.keep.setChecked(self._model.keep_chats)
