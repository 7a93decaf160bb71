"""The legend of the marks on the graphs: what each form stands for, as switches."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QCheckBox

from engine_host.protocol.language import tr
from sndr_gui.kit import theme
from sndr_gui.kit.shortcuts import keys
from sndr_gui.models.monitor.marks import GROUPS, MarksModel
from sndr_gui.views.graphs.marks import icon_of
from sndr_gui.views.widgets.buttons import tip
from sndr_gui.views.widgets.flow import Flow
from sndr_gui.views.widgets.labels import set_text, text


class MarksLegend(Flow):
    """One switch for each group of marks, with the form in which they are drawn."""

    def __init__(self, model: MarksModel) -> None:
        self.said = text("", "muted")
        self.said.setToolTip(tip(tr("Point at a mark for what happened, click it for its log")))
        super().__init__(self.said, spacing=14, lines=4)
        self.model = model
        self.setMinimumWidth(1)
        self.setAccessibleName(tr("Events marked on the graphs"))
        self.switches: list[QCheckBox] = []
        for group in GROUPS:
            switch = QCheckBox(group.title)
            switch.setChecked(True)
            switch.setToolTip(tip(group.hint, keys("marks") if not self.switches else ""))
            switch.setAccessibleName(tr("{title} on the graphs", title=group.title))
            switch.setAccessibleDescription(group.hint)
            switch.toggled.connect(partial(model.switch, group.title))
            self.switches.append(switch)
            self.add(switch)
        jump = QShortcut(QKeySequence(keys("marks")), self)
        jump.activated.connect(partial(self.switches[0].setFocus, Qt.FocusReason.ShortcutFocusReason))
        theme.notifier.changed.connect(self._draw_icons)
        model.changed.connect(self._on_changed)
        self._draw_icons()
        self._on_changed()

    def _draw_icons(self) -> None:
        for group, switch in zip(GROUPS, self.switches, strict=True):
            switch.setIcon(icon_of(group))

    def _on_changed(self) -> None:
        set_text(self.said, self.model.said)
