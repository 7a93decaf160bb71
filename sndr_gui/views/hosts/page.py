"""The page Hosts: this machine and the others as cards; each opens with all that is known of it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent

from engine_host.protocol.language import tr
from sndr_gui.models.hosts.page import HostsModel
from sndr_gui.views.hosts.adding import AddHostDialog
from sndr_gui.views.hosts.cards import HostCards, HostCardView
from sndr_gui.views.hosts.detail import HostDetail
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import EmptyState
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import set_text
from sndr_gui.views.widgets.page import Page

_ABOUT = tr(
    "Other machines are reached over your own ssh: its configuration, keys, agent "
    "and jump hosts. Once one is connected, every page can be about it: the choice "
    "stands at the top of the sidebar."
)


class HostsView(Page):
    """The page of hosts."""

    def __init__(self, model: HostsModel, open_page: Callable[[str], object]) -> None:
        super().__init__(tr("Hosts"), scrolls=True)
        self.model = model
        self._open_page = open_page
        self.all_hosts = button(
            tr("All hosts"), lambda: model.open(None), icon="chevron-left",
            hint=tr("Back to all hosts (Esc)"),
            command="sndr host list",
        )  # fmt: skip
        self.new = button(
            tr("Add host…"),
            self.add,
            icon="plus",
            kind="primary",
            hint=tr("Keep another machine by a name"),
            command="sndr host add NAME USER@HOST",
        )
        self.tools.addWidget(self.all_hosts)
        self.tools.addWidget(self.new)
        self._cards = HostCards(model)
        self._empty = EmptyState(
            "server",
            tr("No other machine yet"),
            _ABOUT,
            CopyField("sndr host add NAME USER@HOST", tr("the command")),
        )
        self.detail: HostDetail | None = None
        self.body.addWidget(self._cards)
        self.body.addWidget(self._empty, 1)
        self.body.addStretch(1)
        self.dialog: AddHostDialog | None = None
        model.changed.connect(self.refresh)
        self.refresh()

    @property
    def cards(self) -> dict[str, HostCardView]:
        """The card of each host, by name; this machine's is the empty one."""
        return self._cards.cards

    def set_shown(self, shown: bool) -> None:
        self.model.set_shown(shown)

    def step_back(self) -> bool:
        if self.model.opened is None:
            return False
        self.model.open(None)
        return True

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.step_back():
            return
        super().keyPressEvent(event)

    def add(self) -> None:
        """Ask for another machine."""
        self.dialog = AddHostDialog(self, self.model)
        self.dialog.finished.connect(self._on_closed)
        self.dialog.open()

    def _on_closed(self) -> None:
        self.dialog = None

    def refresh(self) -> None:
        """Show the hosts of now."""
        model = self.model
        cards = model.cards
        opened = next((card for card in cards if card.name and card.name == model.opened), None)
        set_text(self.title, opened.title if opened is not None else tr("Hosts"))
        set_text(self.subtitle, opened.about if opened is not None else model.subtitle)
        self.all_hosts.setVisible(opened is not None)
        self.new.setVisible(opened is None)
        self.new.setEnabled(model.connected)
        self._cards.show_cards(cards)
        self._empty.setVisible(len(cards) == 1)
        self._show_detail(opened.name if opened is not None else None)
        self._cards.setVisible(opened is None)
        if self.detail is not None and opened is not None:
            self.detail.show_card(opened)

    def _show_detail(self, name: str | None) -> None:
        shown = self.detail.name if self.detail is not None else None
        if shown == name:
            return
        if self.detail is not None:
            self.detail.model.close()
            self.body.removeWidget(self.detail)
            self.detail.hide()
            self.detail.deleteLater()
            self.detail = None
            if shown in self.cards and name is None:
                self._cards.show()
                self.cards[shown].buttons.made["open"].setFocus()
        if name is not None:
            self.detail = HostDetail(self.model, name, self._open_page)
            self.body.insertWidget(0, self.detail)
            self.detail.show()
            self.detail.tabs.setFocus()
