"""The icon in the desktop's tray, where there is one: state, start, stop, endpoint; never the only way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QMenu, QSystemTrayIcon, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.kit.resources import resource
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.engine.choice import state_word
from sndr_gui.models.home.page import HomeModel
from sndr_gui.views.widgets.copying import copy


class Tray(QObject):
    """Shows what runs while the setting asks for it; a desktop without a tray goes without a word."""

    def __init__(
        self,
        window: QWidget,
        home: HomeModel,
        show: Callable[[], object],
        available: Callable[[], bool] = QSystemTrayIcon.isSystemTrayAvailable,
    ) -> None:
        """`show` brings the window to the front."""
        super().__init__(window)
        self._window, self._home, self._show, self._available = window, home, show, available
        self.icon: QSystemTrayIcon | None = None
        self.menu = QMenu(window)
        self.menu.aboutToShow.connect(self.fill)
        home.changed.connect(self._on_changed)

    @property
    def shown(self) -> bool:
        """True while the icon is there."""
        return self.icon is not None

    def set_wanted(self, wanted: bool) -> None:
        """Show the icon, or take it away."""
        if wanted == self.shown or (wanted and not self._available()):
            return
        if not wanted:
            assert self.icon is not None
            self.icon.hide()
            self.icon.deleteLater()
            self.icon = None
            return
        self.icon = QSystemTrayIcon(QIcon(str(resource("icons", "sndr.svg"))), self)
        self.icon.setContextMenu(self.menu)
        self.icon.activated.connect(self._on_activated)
        self.fill()
        self._on_changed()
        self.icon.show()

    @property
    def sentence(self) -> str:
        """The state in a line."""
        session = self._home.session
        if not session.connection.connected:
            return session.connection.sentence
        live = session.state.live
        if not live:
            return tr("No engine runs")
        return ", ".join(f"{formats.shortened(one.name)}: {state_word(one)}" for one in live[:4])

    def fill(self) -> None:
        """Make the menu for what runs now."""
        home, menu = self._home, self.menu
        menu.clear()
        menu.addAction(_literal(self.sentence)).setEnabled(False)
        menu.addSeparator()
        menu.addAction(tr("Show the window"), self._show)
        connected = home.session.connection.connected
        if connected and home.last.engine is not None:
            menu.addAction(_literal(home.last.label), home.last.start)
        if connected and home.demo_to_start is not None:
            menu.addAction(tr("Start the demo model"), home.start_demo)
        for engine in home.session.state.live if connected else ():
            label = _literal(tr("Stop {name}", name=formats.shortened(engine.name)))
            menu.addAction(label, partial(home.stop_engine, engine.id))
        endpoint = home.endpoint
        if endpoint is not None and endpoint.url:
            url = endpoint.url
            menu.addAction(tr("Copy the endpoint"), lambda: copy(url))
        menu.addSeparator()
        menu.addAction(tr("Close the window"), self._on_close)

    def _on_close(self) -> None:
        # It may have to ask something, which is asked where it can be seen.
        self._show()
        self._window.close()

    def _on_activated(self, why: QSystemTrayIcon.ActivationReason) -> None:
        if why == QSystemTrayIcon.ActivationReason.Trigger:
            self._show()

    def _on_changed(self) -> None:
        if self.icon is not None:
            self.icon.setToolTip(plain_tooltip(tr("SNDR Control Center\n{sentence}", sentence=self.sentence)))


def _literal(label: str) -> str:
    """Return a menu's text in which no letter is taken for its key."""
    return label.replace("&", "&&")
