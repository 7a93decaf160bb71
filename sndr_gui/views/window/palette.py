"""The command palette: type a few letters, Enter does it, Esc closes it."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPointF,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QFont,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QTextCharFormat,
    QTextLayout,
    QTextOption,
)
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
from shiboken6 import isValid

from engine_host.protocol.language import tr
from sndr_gui.kit import formats, theme
from sndr_gui.models.window.palette import Entry, Finder, Found
from sndr_gui.models.window.throttle import Throttle
from sndr_gui.views.widgets.labels import ElidedLabel, set_text, text
from sndr_gui.views.widgets.layout import row, rule

_ROWS, _HEIGHT = 9, 34
_AGAIN_MS = 150
_FOUND = Qt.ItemDataRole.UserRole
_STEPS = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}
_LEAPS = {Qt.Key.Key_PageDown: _ROWS - 1, Qt.Key.Key_PageUp: 1 - _ROWS}


class _Line(QStyledItemDelegate):
    """Draws a command: the letters that were typed bold, its hint at the right, muted."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        found = index.data(_FOUND)
        frame = QStyleOptionViewItem(option)
        self.initStyleOption(frame, index)
        frame.text = ""
        frame.widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, frame, painter, frame.widget)
        if not isinstance(found, Found):
            return
        painter.save()
        place = frame.rect.adjusted(10, 0, -12, 0)
        metrics = frame.fontMetrics
        hint = metrics.elidedText(found.hint, Qt.TextElideMode.ElideRight, place.width() // 2)
        painter.setPen(theme.color("muted"))
        painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, hint)
        painter.setPen(theme.color("text"))
        room = place.width() - metrics.horizontalAdvance(hint) - 16
        line = title_line(found.title, found.places, frame.font, room)
        top = place.top() + (place.height() - line.boundingRect().height()) / 2
        line.draw(painter, QPointF(place.left(), top), clip=QRectF(place))
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        # Signs of another font would make their row higher.
        return QSize(0, _HEIGHT)


def title_line(title: str, places: Sequence[int], font: QFont, room: int) -> QTextLayout:
    """Return a title laid out in one line no wider than its room, with the letters at these places bold."""
    line = _laid_out(title, _runs(title, places), font)
    wide = line.boundingRect().width()
    if wide <= room:
        return line
    metrics = QFontMetrics(font)
    # Bold letters are wider than those that the metrics measure.
    more = max(0, round(wide) - metrics.horizontalAdvance(title))
    cut = metrics.elidedText(title, Qt.TextElideMode.ElideRight, max(0, room - more))
    return _laid_out(cut, _runs(cut, [place for place in places if place < len(cut) - 1]), font)


def _runs(title: str, places: Sequence[int]) -> list[tuple[int, int]]:
    """Return places that stand together as begin and length, in the units of Qt's texts."""
    found: list[tuple[int, int]] = []
    wide = not title.isascii() and max(title) > "\uffff"
    for place in places:
        # A letter beyond the first 65,536 takes two units.
        start = len(title[:place].encode("utf-16-le")) // 2 if wide else place
        size = 2 if wide and title[place] > "\uffff" else 1
        if found and sum(found[-1]) == start:
            found[-1] = (found[-1][0], found[-1][1] + size)
        else:
            found.append((start, size))
    return found


def _laid_out(title: str, runs: Sequence[tuple[int, int]], font: QFont) -> QTextLayout:
    made = QTextLayout(title, font)
    # A name in Hebrew stands at the left like the others, and is read in its own direction.
    option = QTextOption(Qt.AlignmentFlag.AlignLeft)
    option.setTextDirection(Qt.LayoutDirection.LeftToRight)
    option.setWrapMode(QTextOption.WrapMode.NoWrap)
    made.setTextOption(option)
    bold = QTextCharFormat()
    bold.setFontWeight(QFont.Weight.DemiBold)
    formats = []
    for start, size in runs:
        one = QTextLayout.FormatRange()
        one.start, one.length, one.format = start, size, bold
        formats.append(one)
    made.setFormats(formats)
    made.beginLayout()
    made.createLine()
    made.endLayout()
    return made


class Palette(QFrame):
    """Lies over the window while it is open; not a dialog, so that nothing stands still.

    Signals:
        ran: an Entry that is carried out now
    """

    ran = Signal(object)

    def __init__(
        self, window: QWidget, entries: Callable[[], Sequence[Entry]], recent: Callable[[], Sequence[str]]
    ) -> None:
        super().__init__(window)
        self.setObjectName("palette")
        self._entries, self._recent = entries, recent
        self._finder = Finder()
        self._found: list[Found] = []
        self._before: QWidget | None = None
        self.edit = QLineEdit()
        self.edit.setObjectName("plain")
        self.edit.setPlaceholderText(tr("Type a page, an action, a model, a setting…"))
        self.edit.setAccessibleName(tr("Command"))
        self.edit.textChanged.connect(self._fill)
        self.edit.installEventFilter(self)
        self.list = QListWidget()
        self.list.setObjectName("bare")
        self.list.setAccessibleName(tr("Commands"))
        self.list.setItemDelegate(_Line(self.list))
        self.list.setUniformItemSizes(True)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.itemClicked.connect(self._on_item)
        self.list.currentRowChanged.connect(self._tell)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._none = text(tr("Nothing has these letters in this order. A few of a name suffice."), "muted")
        self.count = text("", "muted")
        self.foot = ElidedLabel("", "muted")
        self._foot = row(self.foot, self.count)
        self._foot.setStretch(0, 1)
        body = QVBoxLayout(self)
        body.setContentsMargins(14, 14, 14, 10)
        body.setSpacing(10)
        body.addWidget(self.edit)
        body.addWidget(rule())
        body.addWidget(self._none)
        body.addWidget(self.list)
        body.addLayout(self._foot)
        self._throttle = Throttle(self, _AGAIN_MS, self._refresh)
        window.installEventFilter(self)
        self.hide()

    def open(self) -> None:
        """Show it over the window with everything that can be done now."""
        window = self.window()
        if not self.isVisible():
            self._before = window.focusWidget()
        self._finder = Finder(self._entries(), self._recent())
        self.edit.clear()
        self._fill("")
        self.show()
        self.raise_()
        self.edit.setFocus()
        if (shown := window.windowHandle()) is not None:
            # Buttons of the sidebar take no focus from it.
            shown.installEventFilter(self)

    def refresh(self) -> None:
        """Offer what can be done now, if it is open; what was typed and chosen stays."""
        if self.isVisible():
            self._throttle.trigger()

    def _refresh(self) -> None:
        if not self.isVisible():
            return
        place = self.list.currentRow()
        chosen = self._found[place].entry.remembered if 0 <= place < len(self._found) else ""
        self._finder = Finder(self._entries(), self._recent())
        self._fill(self.edit.text())
        # At the top nobody has chosen yet: what fits best may be another one now.
        keys = [found.entry.remembered for found in self._found]
        if place > 0 and chosen in keys:
            self.list.setCurrentRow(keys.index(chosen))

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
        if watched.isWindowType() and event.type() == QEvent.Type.MouseButtonPress:
            assert isinstance(event, QMouseEvent)
            if self.isVisible() and not self.geometry().contains(event.position().toPoint()):
                self.close_palette()
        return False

    def _on_key(self, key: int) -> bool:
        pressed = Qt.Key(key)
        count = max(1, self.list.count())
        if (step := _STEPS.get(pressed)) is not None:
            self.list.setCurrentRow((self.list.currentRow() + step) % count)
            return True
        if (leap := _LEAPS.get(pressed)) is not None:
            self.list.setCurrentRow(min(count - 1, max(0, self.list.currentRow() + leap)))
            return True
        if pressed == Qt.Key.Key_Escape:
            self.close_palette()
            return True
        if pressed in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._run(self.list.currentRow())
            return True
        return False

    def _on_item(self, item: QListWidgetItem) -> None:
        self._run(self.list.row(item))

    def _run(self, place: int) -> None:
        if 0 <= place < len(self._found):
            entry = self._found[place].entry
            self.close_palette()
            self.ran.emit(entry)
            entry.run()

    def _fill(self, typed: str) -> None:
        self._found = self._finder.find(typed)
        self.list.clear()
        for found in self._found:
            item = QListWidgetItem(found.title)
            item.setData(_FOUND, found)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{found.title}, {found.hint}")
            self.list.addItem(item)
        self.list.setCurrentRow(0)
        self.list.setVisible(bool(self._found))
        self._none.setVisible(not self._found)
        fitting, total = self._finder.fitting, self._finder.total
        set_text(
            self.count,
            tr("{fitting} of {total}", fitting=formats.number(fitting), total=formats.number(total))
            if fitting != total
            else formats.number(total),
        )
        self._tell()
        self._place()

    def _tell(self, _place: int = 0) -> None:
        """Say the chosen command to screen readers, for the field has the focus and not the list."""
        place = self.list.currentRow()
        if 0 <= place < len(self._found):
            found = self._found[place]
            told = tr(
                "{title}, {hint}, {place} of {found}",
                title=found.title,
                hint=found.hint,
                place=place + 1,
                found=len(self._found),
            )
        else:
            told = self._none.text()
        command = self._found[place].entry.command if 0 <= place < len(self._found) else ""
        set_text(self.foot, command or tr("Enter runs it, Esc closes"))
        if self.edit.accessibleDescription() != told:
            self.edit.setAccessibleDescription(told)

    def _place(self) -> None:
        window = self.parentWidget()
        if window is None:
            return
        width = min(600, window.width() - 80)
        lines = min(_ROWS, max(1, len(self._found)))
        self.list.setFixedHeight(lines * _HEIGHT + 6)
        height = 14 + self.edit.sizeHint().height() + 10 + 1 + 10 + lines * _HEIGHT + 6 + 10
        height += self._foot.sizeHint().height() + 10
        self.setGeometry((window.width() - width) // 2, 90, width, height)
