"""A block of code in a message: a frame that grows by lines, coloured as they come, with a copy button."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFrame,
    QTextFrameFormat,
    QTextLayout,
)
from PySide6.QtWidgets import QHBoxLayout, QWidget

from engine_host.client import visible
from engine_host.protocol.language import tr
from sndr_gui.kit import theme
from sndr_gui.models.chat import code_colours
from sndr_gui.models.chat.paragraphs import LONGEST
from sndr_gui.views.widgets.copying import CopyButton
from sndr_gui.views.widgets.labels import text

MOST_LINES = 300
"""Lines of one frame: Qt lays a frame out as a whole with each line that comes."""
_HEADER = 24
_SOME_BREAKS = "\n" * 40
_MANY_BREAKS = re.compile("\n{41,}")
_TOKENS = {
    code_colours.KEYWORD: "accent",
    code_colours.STRING: "good",
    code_colours.NUMBER: "warn",
    code_colours.COMMENT: "muted",
    code_colours.ADDED: "good",
    code_colours.REMOVED: "bad",
}


class CodeHeader(QWidget):
    """The language of a block of code and the button that copies it, over the upper edge of its frame."""

    def __init__(self, parent: QWidget, language: str) -> None:
        super().__init__(parent)
        self.copy = CopyButton(tr("this code"))
        self.copy.setCursor(Qt.CursorShape.ArrowCursor)
        line = QHBoxLayout(self)
        line.setContentsMargins(10, 0, 2, 0)
        line.setSpacing(8)
        line.addWidget(text(visible(language), "muted"), 1)
        line.addWidget(self.copy)

    def place(self, left: float, top: float, width: float) -> None:
        """Stand at the upper edge of a frame."""
        self.setGeometry(
            int(left), int(top) + 1, max(60, int(width) - 2), max(_HEADER + 4, self.copy.sizeHint().height())
        )


class CodeFrame:
    """Writes one block of code into a document, as one frame or several that follow each other."""

    def __init__(self, document: QTextDocument, cursor: QTextCursor, language: str) -> None:
        """Begin at a cursor, which stands behind the frame afterwards."""
        self._document = document
        self._language = code_colours.language_of(language)
        self._source: list[str] = []
        self._lines = 0
        self._length = 0
        self._state = ""
        self._look = code_look()
        self._colours: dict[str, QTextCharFormat] = {}
        self.first = self._frame = self._begin(cursor)
        # Room for the header: Qt leaves a margin above the first line of a frame out.
        room = QTextCursor(self._frame)
        room.setBlockFormat(_line_shape(_HEADER))
        room.insertBlock(_code_shape(), self._look)
        self._block = self._frame.lastCursorPosition().block()

    @property
    def source(self) -> str:
        """The code as it came."""
        return "".join(self._source)

    @property
    def end(self) -> int:
        """The place behind the frame."""
        return self._frame.lastPosition() + 1

    def _begin(self, cursor: QTextCursor) -> QTextFrame:
        # The empty line that Qt keeps before a frame is made as thin as it can be.
        cursor.setBlockFormat(thin_shape())
        shape = QTextFrameFormat()
        shape.setBackground(theme.color("raised"))
        shape.setPadding(10)
        shape.setBottomMargin(6)
        frame = cursor.insertFrame(shape)
        cursor.setBlockFormat(_code_shape())
        cursor.setPosition(frame.lastPosition() + 1)
        return frame

    def append(self, code: str) -> None:
        """Add code that came."""
        self._source.append(code)
        # Nobody looks at a thousand empty lines; the copy has them.
        first, *following = visible(_MANY_BREAKS.sub(_SOME_BREAKS, code)).split("\n")
        self._write(first)
        for number, line in enumerate(following):
            if self._lines + 1 >= MOST_LINES:
                self._continue()
            else:
                self._cursor().insertBlock(_code_shape(), self._look)
                self._lines += 1
            self._length = 0
            self._write(line)
            if number % 50 == 49:
                self._paint()
        self._paint()

    def _write(self, line: str) -> None:
        while line:
            room = LONGEST - self._length
            if room <= 0:
                # Only drawn so: a line without an end would be laid out anew with each letter.
                self._cursor().insertBlock(_code_shape(), self._look)
                self._length, room = 0, LONGEST
            self._cursor().insertText(line[:room], self._look)
            self._length += len(line[:room])
            line = line[room:]

    def _continue(self) -> None:
        self._paint()
        self._frame_shape_without_end()
        cursor = QTextCursor(self._document)
        cursor.setPosition(self.end)
        self._frame = self._begin(cursor)
        self._block, self._lines = self._frame.firstCursorPosition().block(), 0

    def _frame_shape_without_end(self) -> None:
        shape = self._frame.frameFormat()
        shape.setBottomMargin(0)
        self._frame.setFrameFormat(shape)

    def _cursor(self) -> QTextCursor:
        cursor = QTextCursor(self._document)
        cursor.setPosition(self._frame.lastPosition())
        return cursor

    def _paint(self) -> None:
        """Colour the lines from the one that was the last before."""
        if not self._language:
            return
        last = self._document.findBlock(self._frame.lastPosition())
        block = first = self._block
        while block.isValid():
            state = self._colour(block)
            if block == last:
                break
            self._state = state
            block = block.next()
        self._block = last
        # Once for all of them: each time the document is laid out from there on.
        length = last.position() + last.length() - first.position()
        self._document.markContentsDirty(first.position(), length)

    def _colour(self, block: QTextBlock) -> str:
        found, state = code_colours.spans(block.text(), self._language, self._state)
        ranges = []
        for start, length, kind in found:
            part = QTextLayout.FormatRange()
            part.start, part.length, part.format = start, length, self._format(kind)
            ranges.append(part)
        block.layout().setFormats(ranges)
        return state

    def _format(self, kind: str) -> QTextCharFormat:
        if kind not in self._colours:
            made = QTextCharFormat()
            made.setForeground(theme.color(_TOKENS[kind]))
            self._colours[kind] = made
        return self._colours[kind]


def code_look() -> QTextCharFormat:
    """Return the letters of code."""
    look = QTextCharFormat()
    look.setFontFamilies([theme.mono_font().family()])
    look.setProperty(QTextCharFormat.Property.FontPixelSize, 12)
    return look


def _code_shape() -> QTextBlockFormat:
    shape = QTextBlockFormat()
    shape.setLineHeight(125, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
    return shape


def thin_shape() -> QTextBlockFormat:
    """Return the shape of a line that has to be there and is not to be seen."""
    return _line_shape(2)


def _line_shape(pixels: int) -> QTextBlockFormat:
    shape = QTextBlockFormat()
    shape.setLineHeight(pixels, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
    return shape
