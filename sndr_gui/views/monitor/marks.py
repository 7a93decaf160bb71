"""The button whose menu says what the marks of the graphs stand for, and switches them."""

from __future__ import annotations

from functools import partial

from PySide6.QtWidgets import QMenu

from engine_host.protocol.language import tr
from sndr_gui.kit import theme
from sndr_gui.kit.shortcuts import keys
from sndr_gui.models.monitor.marks import GROUPS, MarksModel
from sndr_gui.views.graphs.marks import icon_of
from sndr_gui.views.widgets.buttons import Button, tip


class MarksButton(Button):
    """Opens the menu of the marks: one tick for each group, with the form in which it is drawn."""

    def __init__(self, model: MarksModel) -> None:
        super().__init__(tr("Events"))
        self.model = model
        self.setProperty("flat", "true")
        self.setAccessibleName(tr("Events marked on the graphs"))
        self.setShortcut(keys("marks"))
        self.setToolTip(
            tip(
                tr(
                    "What the marks on the graphs stand for, and which are shown; point at one for "
                    "what happened, click it for its log"
                ),
                keys("marks"),
            )
        )
        self._menu = QMenu(self)
        self._menu.setToolTipsVisible(True)
        for group in GROUPS:
            action = self._menu.addAction(group.title)
            action.setCheckable(True)
            action.setChecked(True)
            action.setToolTip(tip(group.hint))
            action.toggled.connect(partial(model.switch, group.title))
        self._menu.addSeparator()
        self._menu.addAction(tr("Show all"), partial(self._switch_all, True))
        self._menu.addAction(tr("Show none"), partial(self._switch_all, False))
        self.clicked.connect(self._on_clicked)
        theme.notifier.changed.connect(self._draw_icons)
        model.changed.connect(self._on_changed)
        self._draw_icons()
        self._on_changed()

    @property
    def menu_of_groups(self) -> QMenu:
        """The menu."""
        return self._menu

    def _on_clicked(self) -> None:
        self._menu.popup(self.mapToGlobal(self.rect().bottomLeft()))

    def _switch_all(self, on: bool) -> None:
        for action in self._menu.actions()[: len(GROUPS)]:
            action.setChecked(on)

    def _draw_icons(self) -> None:
        for group, action in zip(GROUPS, self._menu.actions(), strict=False):
            action.setIcon(icon_of(group))

    def _on_changed(self) -> None:
        # A menu shows the form or a tick, not both.
        for group, action in zip(GROUPS, self._menu.actions(), strict=False):
            action.setText(
                tr("{title} (off)", title=group.title) if group.title in self.model.off else group.title
            )
        self.setText(
            tr("Events")
            if not self.model.off
            else tr(
                "Events ({groups} of {groups_2})",
                groups=len(GROUPS) - len(self.model.off),
                groups_2=len(GROUPS),
            )
        )
        self.setAccessibleDescription(tr("{said} on the graphs", said=self.model.said))
