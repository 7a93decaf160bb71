"""The text of one message: plain while it grows, Markdown a paragraph at a time; opens nothing by itself."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QSize, Qt, QUrl, Signal
from PySide6.QtGui import (
    QResizeEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocumentFragment,
)
from PySide6.QtWidgets import QSizePolicy, QTextBrowser

from engine_host.protocol.language import tr
from sndr_gui.kit import theme
from sndr_gui.models.chat.paragraphs import Code, CodeEnd, CodeStart, MarkdownStream, Piece, Prose
from sndr_gui.views.chat.code_frame import CodeFrame, CodeHeader, code_look, thin_shape
from sndr_gui.views.chat.drawing_turns import turns
from sndr_gui.views.chat.markdown import document_of

MOST_SHOWN = 300_000
"""Characters of a message that are drawn; nobody reads more of one, and each costs memory and time."""
_AT_ONCE = 600
"""Characters that are drawn as they come; a longer text, such as a kept answer, waits for its turns."""
_SLICE = 200
"""Characters of a turn's step: sixty blocks of code may be in six hundred."""
MOST_FRAMES = 100
"""Blocks of code of one message that have a frame; the rest is plain letters of one width."""
_MOST_MARKS = 400
"""Of Markdown in one paragraph; with more nobody reads it, and Qt takes seconds for its tables and spans."""
_LONGEST_CODE = 20_000
_MARKS = "|*_`[~<>"
_LEFT_OUT = tr("[The rest of this text is not drawn. Copy and Export have all of it.]")
# Signs that Qt's documents use for frames and objects of their own, and ends of lines of other systems.
_CLEAN = {0: 0xFFFD, 0xFFFC: 0xFFFD, 0xFDD0: 0xFFFD, 0xFDD1: 0xFFFD, 0x0D: None, 0x2028: 0x0A, 0x2029: 0x0A}


class MessageText(QTextBrowser):
    """Grows with its text, and has no scroll bars of its own.

    Signals:
        link_chosen: a link that was clicked; it is not opened here
    """

    link_chosen = Signal(str)

    def __init__(self, name: str, tone: str = "") -> None:
        super().__init__()
        self.setObjectName("message")
        if tone:
            self.setProperty("tone", tone)
        self.setAccessibleName(name)
        self.setOpenLinks(False)
        self.setUndoRedoEnabled(False)
        self.setFrameShape(QTextBrowser.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(0)
        self.document().setIndentWidth(22)
        self._parts: list[str] = []
        self._plain = self._stale = False
        self._language = ""
        self._headers: list[tuple[CodeFrame, CodeHeader]] = []
        self._begin()
        self.anchorClicked.connect(self._on_anchor)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        theme.notifier.changed.connect(self.render_again)

    def _begin(self) -> None:
        """Begin with an empty document."""
        for _frame, header in self._headers:
            header.hide()
            header.deleteLater()
        self._headers = []
        self._stream = MarkdownStream()
        self._code: CodeFrame | None = None
        self._waiting = ""
        self._drawn = self._tail = 0
        self._rest = ""
        self._ending = self._ended = False
        self.clear()
        QTextCursor(self.document()).setBlockFormat(_plain_shape())

    def loadResource(self, kind: int, url: QUrl | str) -> object:
        """Return nothing for any resource: a text must not reach the network or the disk.

        Empty bytes, not None: after a null value QTextDocument opens the file itself (qtextdocument.cpp,
        QTextDocument::loadResource).
        """
        return QByteArray(b"")

    def _on_anchor(self, url: QUrl) -> None:
        self.link_chosen.emit(url.toString())

    @property
    def written(self) -> str:
        """The whole text as it came."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def append_text(self, text: str) -> None:
        """Add text that came; paragraphs that ended become Markdown."""
        self._parts.append(text)
        self._queue(text)

    def finish(self) -> None:
        """Draw the last paragraph: the text is complete."""
        self._ending = True
        if not self._waiting:
            self._end()

    def set_plain(self, text: str) -> None:
        """Show a text literally."""
        self._parts = [text]
        self._plain = True
        left_out = f"\n{_LEFT_OUT}" if len(text) > MOST_SHOWN else ""
        self.setPlainText(text[:MOST_SHOWN].translate(_CLEAN) + left_out)

    def show_code(self, code: str, language: str) -> None:
        """Show a text as one block of code."""
        self._begin()
        self._parts, self._language = [code], language
        room = code[:_LONGEST_CODE]
        self._insert([CodeStart(language), Code(room.translate(_CLEAN)), CodeEnd()])
        if len(room) < len(code):
            self._insert([Prose(_LEFT_OUT)])
        self._headers[0][1].copy.set_content(code)
        self._drop_empty_end()
        self._plain = True
        self._fit()

    def render_again(self) -> None:
        """Draw in the colours of now, when it is its turn."""
        if self._headers or (self._parts and not self._plain):
            self._stale = True
            turns().wait(self)

    # Drawing.

    @property
    def drawn(self) -> bool:
        """True once nothing waits to be drawn."""
        return not self._waiting and not self._stale

    def _queue(self, text: str) -> None:
        self._waiting += text
        if self._stale or len(self._waiting) > _AT_ONCE:
            turns().wait(self)
        else:
            self.draw_slice()

    def draw_slice(self) -> bool:
        """Draw a little of what waits; return True where there is more."""
        if self._stale:
            self._begin_again()
        step = _SLICE if len(self._waiting) > _AT_ONCE else _AT_ONCE
        now, self._waiting = self._waiting[:step], self._waiting[step:]
        room = MOST_SHOWN - self._drawn
        if room <= 0:
            self._waiting = ""
        elif now:
            self._drawn += len(now)
            self._draw(now[:room].translate(_CLEAN))
            if len(now) > room:
                self._insert([*self._stream.finish(), Prose(_LEFT_OUT)])
        if not self._waiting and self._ending:
            self._end()
        return bool(self._waiting)

    def _begin_again(self) -> None:
        self._stale = False
        source, ending = self.written, self._ending
        if self._plain:
            self.show_code(source, self._language)
            return
        self._begin()
        self._waiting, self._ending = source, ending

    def _draw(self, text: str) -> None:
        pieces = self._stream.feed(text)
        rest = self._stream.rest
        if pieces:
            self._insert(pieces)
        elif rest and rest == self._rest + text:
            cursor = self._tail_cursor()
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(text, QTextCharFormat())
            self._rest = rest
            return
        if rest != self._rest:
            cursor = self._tail_cursor()
            cursor.beginEditBlock()
            cursor.removeSelectedText()
            cursor.insertText(rest, QTextCharFormat())
            cursor.endEditBlock()
            self._rest = rest

    def _end(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._insert(self._stream.finish())
        self._drop_empty_end()

    def _insert(self, pieces: list[Piece]) -> None:
        cursor = self._tail_cursor()
        cursor.beginEditBlock()
        cursor.removeSelectedText()
        self._rest = ""
        for piece in pieces:
            if isinstance(piece, Prose):
                self._insert_prose(cursor, piece.text)
            elif isinstance(piece, CodeStart):
                self._begin_code(cursor, piece.language)
            elif isinstance(piece, Code):
                self._insert_code(cursor, piece.text)
            elif isinstance(piece, CodeEnd):
                self._end_code(cursor)
        if self._code is None:
            self._tail = cursor.position()
        cursor.endEditBlock()

    def _tail_cursor(self) -> QTextCursor:
        """Return a cursor with what is still to be drawn anew selected."""
        cursor = QTextCursor(self.document())
        if self._code is not None:
            cursor.setPosition(self._code.end)
            return cursor
        cursor.setPosition(min(self._tail, max(0, self.document().characterCount() - 1)))
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        return cursor

    def _insert_prose(self, cursor: QTextCursor, markdown: str) -> None:
        if sum(map(markdown.count, _MARKS)) > _MOST_MARKS:
            cursor.insertText(markdown, QTextCharFormat())
            cursor.insertBlock(_plain_shape(), QTextCharFormat())
            return
        made = document_of(markdown, self.font())
        start = cursor.position()
        cursor.setBlockFormat(made.firstBlock().blockFormat())
        cursor.insertFragment(QTextDocumentFragment(made))
        self._space(start, cursor)
        cursor.insertBlock(_plain_shape(), QTextCharFormat())

    def _begin_code(self, cursor: QTextCursor, language: str) -> None:
        if len(self._headers) < MOST_FRAMES:
            self._code = CodeFrame(self.document(), cursor, language)
            header = CodeHeader(self.viewport(), language)
            self._headers.append((self._code, header))
            header.show()

    def _insert_code(self, cursor: QTextCursor, code: str) -> None:
        if self._code is not None:
            self._code.append(code)
        else:
            cursor.insertText(code, code_look())

    def _end_code(self, cursor: QTextCursor) -> None:
        code = self._code
        if code is None:
            cursor.insertBlock(_plain_shape(), QTextCharFormat())
            return
        cursor.setPosition(code.end)
        cursor.setBlockFormat(_plain_shape())
        cursor.setCharFormat(QTextCharFormat())
        self._headers[-1][1].copy.set_content(code.source)
        self._code = None

    def _space(self, start: int, cursor: QTextCursor) -> None:
        first = self.document().findBlock(start)
        following = first.next()
        if not first.text() and following.isValid() and following.position() <= cursor.position():
            if following.textList() is not None:
                # The list came into a line of its own and left this one empty.
                empty = QTextCursor(first)
                empty.deleteChar()
            else:
                QTextCursor(first).setBlockFormat(thin_shape())
        block = self.document().findBlock(start)
        while block.isValid() and block.position() <= cursor.position():
            shape = QTextBlockFormat()
            if block.text() or block.textList() is not None:
                shape.setLineHeight(140, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
                shape.setBottomMargin(2 if block.textList() is not None else 6)
                QTextCursor(block).mergeBlockFormat(shape)
            block = block.next()

    def _drop_empty_end(self) -> None:
        last = self.document().lastBlock()
        if last.text() or self.document().blockCount() < 2:
            return
        before = self.document().frameAt(last.position() - 1)
        cursor = QTextCursor(last)
        if before == self.document().rootFrame():
            cursor.deletePreviousChar()
        else:
            # A line has to follow a frame; it is made as thin as it can be.
            cursor.setBlockFormat(thin_shape())

    def _fit(self) -> None:
        height = int(self.document().size().height()) + 2
        if height != self.height():
            self.setFixedHeight(height)
        # What comes at the end moves nothing before it.
        self._place(self._headers[-2:])

    def _place(self, headers: list[tuple[CodeFrame, CodeHeader]]) -> None:
        layout = self.document().documentLayout()
        for frame, header in headers:
            around = layout.frameBoundingRect(frame.first)
            header.place(around.left(), around.top(), around.width())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
        if event.size().width() != event.oldSize().width():
            self._place(self._headers)

    def sizeHint(self) -> QSize:
        return QSize(400, int(self.document().size().height()) + 2)


def _plain_shape() -> QTextBlockFormat:
    shape = QTextBlockFormat()
    shape.setLineHeight(140, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
    shape.setBottomMargin(6)
    return shape
