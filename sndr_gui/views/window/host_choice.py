"""The choice of the host that the pages are about; not there while there is only this machine."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine_host.protocol.language import tr
from sndr_gui.host.fleet import Fleet
from sndr_gui.kit import theme
from sndr_gui.kit.shortcuts import keys
from sndr_gui.models.hosts.words import THIS_MACHINE, state_here, state_of
from sndr_gui.views.widgets.buttons import tip
from sndr_gui.views.widgets.fields import ChoiceBox
from sndr_gui.views.widgets.labels import restyle, set_text, set_tone, text
from sndr_gui.views.widgets.layout import row, show_part

_DOT = "  ·  "


class _HostBox(ChoiceBox):
    """A choice whose list says name and state, and which itself shows the name: the sidebar is narrow."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.listed: list[str] = []
        self._open = False

    def show_names(self) -> None:
        """Show the names, and in the open list the states beside them."""
        for place, title in enumerate(self.listed):
            self.setItemText(place, title if self._open else title.partition(_DOT)[0])

    def showPopup(self) -> None:
        self._open = True
        self.show_names()
        super().showPopup()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # Escape hides the list, and not by hidePopup.
        if event.type() is QEvent.Type.Hide:
            self._open = False
            self.show_names()
        return super().eventFilter(watched, event)


class HostChoice(QWidget):
    """Offers this machine and the others, each with its state as a colour and as a word.

    `word` is the state of the chosen one, to be placed near by.
    """

    def __init__(self, fleet: Fleet) -> None:
        super().__init__()
        self._fleet = fleet
        self._tones: tuple[str, ...] = ()
        self._folded = False
        self.box = _HostBox(tr("Host of all pages"))
        self.box.setIconSize(QSize(10, 10))
        self.box.activated.connect(self._on_chosen)
        # Beside the program's name, for in the smallest window the sidebar is full.
        self.word = text()
        self.setLayout(row(self.box))
        fleet.changed.connect(self.refresh)
        fleet.chosen_changed.connect(self.refresh)
        theme.notifier.changed.connect(self._paint)
        self.refresh()

    def refresh(self) -> None:
        """Show the hosts of now."""
        fleet = self._fleet
        word, tone = state_here(fleet.local)
        entries, tones = [(f"{THIS_MACHINE}{_DOT}{word}", "")], [tone]
        for name in fleet.names:
            if (remote := fleet.remote(name)) is not None:
                word, tone = state_of(remote, fleet.known_session(name))
                entries.append((f"{name}{_DOT}{word}", name))
                tones.append(tone)
        self.box.fill(entries, fleet.chosen)
        self.box.listed = [title for title, _name in entries]
        self.box.show_names()
        chosen = self.box.currentIndex()
        set_text(self.word, entries[chosen][0].rpartition(_DOT)[2])
        set_tone(self.word, tones[chosen])
        self._tones = tuple(tones)
        self._paint()
        show_part(self, len(entries) > 1)
        self.word.setVisible(len(entries) > 1 and not self._folded)
        # Folded, its colour alone is seen of the chosen one.
        said = f"{entries[chosen][0]}\n" if self._folded else ""
        said += tr("Show the pages of another host")
        self.box.setToolTip(tip(said, keys("host"), "sndr --host NAME COMMAND"))

    def set_folded(self, folded: bool) -> None:
        """Show the state of the chosen host alone, as a colour; name and word are in the tooltip."""
        self._folded = folded
        policy = QSizePolicy.Policy
        self.box.setSizePolicy(policy.Ignored if folded else policy.Expanding, policy.Fixed)
        self.box.setProperty("folded", folded)
        restyle(self.box)
        self.refresh()

    def open(self) -> None:
        """Offer the hosts, for the keyboard."""
        if self.isVisible():
            self.box.setFocus()
            self.box.showPopup()

    def _paint(self) -> None:
        for place, tone in enumerate(self._tones):
            self.box.setItemIcon(place, theme.icon("dot", tone, 10))

    def _on_chosen(self, place: int) -> None:
        self._fleet.choose(str(self.box.itemData(place)))
        self.refresh()
