"""The command palette: type a few letters, Enter does it, Esc closes it."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QFrame,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

from sndr_gui.kit import theme
from sndr_gui.models.window.palette import Entry, matching
from sndr_gui.views.widgets.labels import text
from sndr_gui.views.widgets.layout import rule

_ROWS = 9


class _HintDelegate(QStyledItemDelegate):
    """Shows a command's hint at the right, muted."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().paint(painter, option, index)
        painter.save()
        painter.setPen(theme.color("muted"))
        place = option.rect.adjusted(0, 0, -12, 0)
        side = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(place, side, str(index.data(Qt.ItemDataRole.UserRole) or ""))
        painter.restore()


class Palette(QFrame):
    """Lies over the window while it is open; not a dialog, so that nothing stands still."""

    def __init__(self, window: QWidget, entries: Callable[[], Sequence[Entry]]) -> None:
        super().__init__(window)
        self.setObjectName("palette")
        self._entries = entries
        self._all: Sequence[Entry] = ()
        self._found: list[Entry] = []
        self._before: QWidget | None = None
        self.edit = QLineEdit()
        self.edit.setObjectName("plain")
        self.edit.setPlaceholderText("Type a page, an action or a model…")
        self.edit.setAccessibleName("Command")
        self.edit.textChanged.connect(self._fill)
        self.edit.installEventFilter(self)
        self.list = QListWidget()
        self.list.setObjectName("bare")
        self.list.setAccessibleName("Commands")
        self.list.setItemDelegate(_HintDelegate(self.list))
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.itemClicked.connect(self._on_item)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._none = text("No command matches.", "muted")
        body = QVBoxLayout(self)
        body.setContentsMargins(14, 14, 14, 10)
        body.setSpacing(10)
        body.addWidget(self.edit)
        body.addWidget(rule())
        body.addWidget(self._none)
        body.addWidget(self.list)
        window.installEventFilter(self)
        self.hide()

    def open(self) -> None:
        """Show it over the window with everything that can be done now."""
        window = self.window()
        self._before = window.focusWidget()
        self._all = self._entries()
        self.edit.clear()
        self._fill("")
        self._place()
        self.show()
        self.raise_()
        self.edit.setFocus()

    def refresh(self) -> None:
        """Offer what can be done now, if it is open; what was typed and chosen stays."""
        if not self.isVisible():
            return
        chosen = self._found[self.list.currentRow()].title if self._found else ""
        self._all = self._entries()
        self._fill(self.edit.text())
        titles = [entry.title for entry in self._found]
        if chosen in titles:
            self.list.setCurrentRow(titles.index(chosen))

    def close_palette(self) -> None:
        """Hide it and give the focus back."""
        self.hide()
        before, self._before = self._before, None
        # A page may have been built anew while the palette was open.
        if before is not None and isValid(before) and before.isVisible():
            before.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.edit and event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            return self._on_key(event.key())
        if watched is self.edit and event.type() == QEvent.Type.FocusOut and self.isVisible():
            self.hide()
        if watched is self.parent() and event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return False

    def _on_key(self, key: int) -> bool:
        step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}.get(Qt.Key(key))
        if step is not None:
            count = max(1, self.list.count())
            self.list.setCurrentRow((self.list.currentRow() + step) % count)
            return True
        if key == Qt.Key.Key_Escape:
            self.close_palette()
            return True
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._run(self.list.currentRow())
            return True
        return False

    def _on_item(self, item: QListWidgetItem) -> None:
        self._run(self.list.row(item))

    def _run(self, place: int) -> None:
        if 0 <= place < len(self._found):
            entry = self._found[place]
            self.close_palette()
            entry.run()

    def _fill(self, typed: str) -> None:
        self._found = matching(self._all, typed)
        self.list.clear()
        for entry in self._found:
            item = QListWidgetItem(entry.title)
            item.setData(Qt.ItemDataRole.UserRole, entry.hint)
            self.list.addItem(item)
        self.list.setCurrentRow(0)
        self.list.setVisible(bool(self._found))
        self._none.setVisible(not self._found)
        self._place()

    def _place(self) -> None:
        window = self.parentWidget()
        if window is None:
            return
        width = min(560, window.width() - 80)
        row = max(34, self.list.sizeHintForRow(0))
        rows = min(_ROWS, max(1, len(self._found)))
        self.list.setFixedHeight(rows * row + 6)
        height = 14 + self.edit.sizeHint().height() + 10 + 1 + 10 + rows * row + 6 + 10
        self.setGeometry((window.width() - width) // 2, 90, width, height)
