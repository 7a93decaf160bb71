"""The list of kept conversations beside the one that is shown."""

from __future__ import annotations

import time

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, QTimer
from PySide6.QtGui import QKeySequence, QPainter, QShortcut
from PySide6.QtWidgets import (
    QFrame,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from engine_host.client.chats.store import Entry
from engine_host.protocol.language import tr
from sndr_gui.kit import formats, theme
from sndr_gui.kit.shortcuts import keys
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.chat.page import ChatModel
from sndr_gui.views.widgets.buttons import icon_button
from sndr_gui.views.widgets.copying import CopyField
from sndr_gui.views.widgets.labels import set_text, text
from sndr_gui.views.widgets.layout import row

WIDTH = 248
_ID, _ABOUT = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1


class _TwoLines(QStyledItemDelegate):
    """Draws a title, and below it when and with whom."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(100, 2 * option.fontMetrics.lineSpacing() + 18)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        opt = QStyleOptionViewItem(option)
        self.initStyleOption(opt, index)
        opt.text = ""
        widget = opt.widget
        widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, opt, painter, widget)
        metrics = opt.fontMetrics
        inside = opt.rect.adjusted(10, 7, -10, -7)
        half = metrics.lineSpacing() + 2
        for number, (said, token) in enumerate(((index.data(), "text"), (index.data(_ABOUT), "muted"))):
            painter.setPen(theme.color(token))
            line = QRect(inside.left(), inside.top() + number * half, inside.width(), half)
            cut = metrics.elidedText(str(said), Qt.TextElideMode.ElideRight, line.width())
            painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, cut)


class HistoryPanel(QFrame):
    """Searches, opens, renames and deletes conversations."""

    def __init__(self, model: ChatModel) -> None:
        super().__init__()
        self.model, self._history = model, model.history
        self._filling = False
        self.setFixedWidth(WIDTH)
        self.filter = QLineEdit()
        self.filter.setAccessibleName(tr("Search conversations"))
        self.filter.setPlaceholderText(tr("Search  ({keys})", keys=keys("filter")))
        self.filter.setClearButtonEnabled(True)
        self.list = QListWidget()
        self.list.setAccessibleName(tr("Conversations"))
        self.list.setItemDelegate(_TwoLines(self.list))
        self.list.setEditTriggers(QListWidget.EditTrigger.NoEditTriggers)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.rename = icon_button("pencil", tr("Rename the chosen conversation"), self._on_rename)
        self.remove = icon_button(
            "trash-2", tr("Delete the chosen conversation; it can come back"), self._on_remove
        )
        self.note = text("", "muted", wrap=True)
        self.command = CopyField("sndr chats list", tr("equivalent command"))
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(8)
        lines.addWidget(self.filter)
        lines.addWidget(self.list, 1)
        lines.addWidget(self.note)
        line = row(self.command, self.rename, self.remove, spacing=2)
        line.setStretch(0, 1)
        lines.addLayout(line)
        self._typed = QTimer(self)
        self._typed.setSingleShot(True)
        self._typed.setInterval(200)
        self._typed.timeout.connect(self._on_search)
        self.filter.textChanged.connect(self._typed.start)
        self.filter.returnPressed.connect(self._to_list)
        self.list.itemActivated.connect(self._on_open)
        self.list.itemClicked.connect(self._on_open)
        self.list.itemChanged.connect(self._on_renamed)
        self.list.currentItemChanged.connect(self._on_current)
        for name, does in (("rename chat", self._on_rename), ("remove chat", self._on_remove)):
            made = QShortcut(QKeySequence(keys(name)), self.list, does)
            made.setContext(Qt.ShortcutContext.WidgetShortcut)
        self._history.changed.connect(self.refresh)
        model.shown_changed.connect(self._choose_shown)
        model.title_changed.connect(self._choose_shown)
        self.refresh()

    def refresh(self) -> None:
        """Show the list of now; while a title is edited it holds still."""
        history = self._history
        if self.list.state() == QListWidget.State.EditingState:
            return
        self._filling = True
        kept = self._chosen()
        self.list.clear()
        now = time.time()
        for entry in history.entries:
            self.list.addItem(_item(entry, now))
        self._filling = False
        self._choose(kept or self.model.shown.id)
        self._say()

    def _say(self) -> None:
        history = self._history
        said = []
        if not history.keep:
            said.append(tr("New conversations are not kept: that is off in Settings."))
        if not history.entries and history.loaded:
            said.append(
                tr("No conversation holds these words.")
                if history.words
                else tr("What you ask is kept here, in files of this machine that only you can read.")
                if history.keep
                else ""
            )
        if history.damaged:
            said.append(tr("{files} cannot be read.", files=formats.plural(history.damaged, "file")))
        set_text(self.note, " ".join(filter(None, said)))
        self.note.setVisible(bool(self.note.text()))
        self._on_current()

    def _chosen(self) -> str:
        item = self.list.currentItem()
        return str(item.data(_ID)) if item is not None else ""

    def _choose_shown(self) -> None:
        self._choose(self.model.shown.id)

    def _choose(self, chat: str) -> None:
        self._filling = True
        for place in range(self.list.count()):
            if self.list.item(place).data(_ID) == chat:
                self.list.setCurrentRow(place)
                break
        else:
            self.list.setCurrentRow(-1)
        self._filling = False
        self._on_current()

    def _on_current(self, *_items: QListWidgetItem | None) -> None:
        chosen = bool(self._chosen())
        self.rename.setEnabled(chosen)
        self.remove.setEnabled(chosen)
        chat = self._chosen()
        self.command.set_content(f"sndr chats export {chat}" if chat else "sndr chats list")

    def _on_search(self) -> None:
        self._history.search(self.filter.text())

    def _to_list(self) -> None:
        if self.list.count():
            self.list.setFocus()
            self.list.setCurrentRow(max(0, self.list.currentRow()))

    def _on_open(self, item: QListWidgetItem) -> None:
        self.model.open(str(item.data(_ID)))

    def _on_rename(self) -> None:
        if (item := self.list.currentItem()) is not None:
            self.list.editItem(item)

    def _on_renamed(self, item: QListWidgetItem) -> None:
        if not self._filling:
            self._history.rename(str(item.data(_ID)), item.text())

    def _on_remove(self) -> None:
        if chat := self._chosen():
            self._history.remove(chat)


def _item(entry: Entry, now: float) -> QListWidgetItem:
    item = QListWidgetItem(entry.title or tr("Untitled"))
    at = time.localtime(entry.changed)
    today = at[:3] == time.localtime(now)[:3]
    when = time.strftime("%H:%M" if today else "%Y-%m-%d", at)
    about = "  ·  ".join([when, *entry.engines[:2]])
    item.setData(_ID, entry.id)
    item.setData(_ABOUT, about)
    item.setData(Qt.ItemDataRole.AccessibleDescriptionRole, about)
    item.setToolTip(plain_tooltip(f"{entry.title}\n{about}"))
    item.setFlags(item.flags() | Qt.ItemFlag.ItemIsEditable)
    return item


def margins_around(panel: QWidget) -> QWidget:
    """Return the panel with the room that a page has at its left."""
    around = QWidget()
    line = row(panel)
    line.setContentsMargins(28, 0, 0, 18)
    around.setLayout(line)
    return around
