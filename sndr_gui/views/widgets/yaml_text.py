"""The YAML editor: line numbers, marks at wrong lines, colours, and undo over the form's changes too."""

from __future__ import annotations

import re
from collections.abc import Mapping

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QSyntaxHighlighter,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QToolTip, QWidget

from sndr_gui.kit import theme
from sndr_gui.kit.tooltip import plain_tooltip

_KEY = re.compile(r"^(\s*(?:- )*)([\w.'\"-]+)(?=\s*:(?:\s|$))")
_COMMENT = re.compile(r"(?:^|\s)(#.*)$")
_INDENT = re.compile(r"[ ]*")
_ROOM = 12


class _YamlColours(QSyntaxHighlighter):
    """Colours keys and comments."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        theme.notifier.changed.connect(self.rehighlight)

    def highlightBlock(self, line: str) -> None:
        """Colour one line."""
        look = QTextCharFormat()
        if key := _KEY.match(line):
            look.setForeground(theme.color("accent"))
            self.setFormat(key.start(2), len(key[2]), look)
        if comment := _COMMENT.search(line):
            look.setForeground(theme.color("muted"))
            self.setFormat(comment.start(1), len(comment[1]), look)


class _Numbers(QWidget):
    """The strip of line numbers."""

    def __init__(self, editor: YamlText) -> None:
        super().__init__(editor)
        self._editor = editor

    def sizeHint(self) -> QSize:
        return QSize(self._editor.strip_width(), 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        self._editor.paint_strip(self, event)


class YamlText(QPlainTextEdit):
    """A text with numbered lines.

    Signals:
        typed: the text changed
    """

    typed = Signal(str)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setFont(theme.mono_font(12))
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        # Tab leaves the editor; Return keeps the indentation, so that it is hardly missed.
        self.setTabChangesFocus(True)
        self._marks: Mapping[int, tuple[str, str]] = {}
        self._last_text = ""
        self._strip = _Numbers(self)
        self._colours = _YamlColours(self.document())
        self.blockCountChanged.connect(self._on_blocks)
        self.updateRequest.connect(self._on_update)
        self.textChanged.connect(self._on_text)
        theme.notifier.changed.connect(self._mark_lines)
        self._on_blocks()

    # The text.

    def _on_text(self) -> None:
        # Colours count as changes of the text too.
        if (content := self.toPlainText()) != self._last_text:
            self._last_text = content
            self.typed.emit(content)

    def replace_text(self, text: str, *, undoable: bool = True) -> None:
        """Show another text; only what differs is replaced, and Ctrl+Z takes it back."""
        text = text.replace("\r\n", "\n")
        before = self.toPlainText()
        if text == before:
            return
        # It is known where it comes from: only what a person types is told.
        self._last_text = text
        if not undoable:
            self.setPlainText(text)
            return
        start = _same(before, text)
        end = _same(before[start:][::-1], text[start:][::-1])
        cursor = QTextCursor(self.document())
        cursor.beginEditBlock()
        cursor.setPosition(start)
        cursor.setPosition(len(before) - end, QTextCursor.MoveMode.KeepAnchor)
        cursor.insertText(text[start : len(text) - end])
        cursor.endEditBlock()

    def go_to(self, line: int) -> None:
        """Put the cursor at the start of a line, which begins with 1, and show it."""
        block = self.document().findBlockByNumber(max(0, line - 1))
        if block.isValid():
            cursor = QTextCursor(block)
            cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock)
            self.setTextCursor(cursor)
            self.centerCursor()
            self.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        plain = event.modifiers() == Qt.KeyboardModifier.NoModifier
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and plain and not self.isReadOnly():
            line = self.textCursor().block().text()
            indent = _INDENT.match(line)
            deeper = "  " if line.rstrip().endswith(":") else ""
            self.textCursor().insertText("\n" + (indent[0] if indent else "") + deeper)
            self.ensureCursorVisible()
            return
        super().keyPressEvent(event)

    # What is wrong in it.

    def show_marks(self, marks: Mapping[int, tuple[str, str]]) -> None:
        """Mark lines, by number: the severity and what is wrong there."""
        if dict(marks) != dict(self._marks):
            self._marks = dict(marks)
            self._mark_lines()

    def _mark_lines(self) -> None:
        found = []
        for line, (severity, _said) in self._marks.items():
            block = self.document().findBlockByNumber(line - 1)
            if not block.isValid():
                continue
            mark = QTextEdit.ExtraSelection()
            ground = theme.color("bad" if severity == "error" else "warn")
            ground.setAlphaF(0.13)
            mark.format.setBackground(ground)
            mark.format.setProperty(QTextFormat.Property.FullWidthSelection, True)
            mark.cursor = QTextCursor(block)
            found.append(mark)
        self.setExtraSelections(found)
        self._strip.update()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            place = QPoint(event.pos().x() - self.viewport().x(), event.pos().y() - self.viewport().y())
            mark = self._marks.get(self.cursorForPosition(place).blockNumber() + 1)
            if mark:
                QToolTip.showText(event.globalPos(), plain_tooltip(mark[1]), self)
                return True
        return super().event(event)

    # The strip.

    def strip_width(self) -> int:
        """Return the width of the largest line number."""
        digits = max(2, len(str(self.blockCount())))
        return _ROOM + digits * self.fontMetrics().horizontalAdvance("9")

    def _on_blocks(self) -> None:
        self.setViewportMargins(self.strip_width(), 0, 0, 0)

    def _on_update(self, area: QRect, dy: int) -> None:
        if dy:
            self._strip.scroll(0, dy)
        else:
            self._strip.update(0, area.y(), self._strip.width(), area.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        inner = self.contentsRect()
        self._strip.setGeometry(inner.left(), inner.top(), self.strip_width(), inner.height())

    def paint_strip(self, strip: QWidget, event: QPaintEvent) -> None:
        """Draw the numbers of the lines in sight; a wrong one in its colour with a bar."""
        painter = QPainter(strip)
        painter.setFont(self.font())
        block = self.firstVisibleBlock()
        shift = self.contentOffset()
        while block.isValid():
            place = self.blockBoundingGeometry(block).translated(shift)
            if place.top() > event.rect().bottom():
                break
            number = block.blockNumber() + 1
            severity = self._marks.get(number, ("", ""))[0]
            token = {"error": "bad", "warning": "warn", "info": "accent"}.get(severity, "muted")
            height = round(place.height())
            # The frame of the viewport lies one padding below that of the strip.
            top = round(place.top()) + self.viewport().y() - strip.y()
            if severity:
                painter.fillRect(0, top, 3, height, QColor(theme.color(token)))
            painter.setPen(theme.color(token))
            area = QRect(0, top, strip.width() - 6, height)
            painter.drawText(area, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, str(number))
            block = block.next()
        painter.end()


def _same(one: str, other: str) -> int:
    """Count the characters that two texts begin with alike."""
    length = min(len(one), len(other))
    low = 0
    while low < length and one[low] == other[low]:
        low += 1
    return low
