"""The text of one message: plain while it grows, Markdown a paragraph at a time; opens nothing by itself."""

from PySide6.QtCore import QByteArray, QSize, Qt, QUrl, Signal
from PySide6.QtGui import (
    QFont,
    QResizeEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextDocumentFragment,
    QTextFormat,
    QTextFrameFormat,
    QTextTable,
)
from PySide6.QtWidgets import QSizePolicy, QTextBrowser

from sndr_gui.kit import theme
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.chat.paragraphs import split_finished

_FEATURES = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML


class MessageText(QTextBrowser):
    """Grows with its text, and has no scroll bars of its own.

    Signals:
        link_chosen: a link that was clicked; it is not opened here
    """

    link_chosen = Signal(str)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setObjectName("message")
        self.setAccessibleName(name)
        self.setOpenLinks(False)
        self.setFrameShape(QTextBrowser.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(0)
        self.document().setIndentWidth(22)
        QTextCursor(self.document()).setBlockFormat(_plain_shape())
        self._pending = ""
        self._source = ""
        self._tail = 0
        self.anchorClicked.connect(self._on_anchor)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        theme.notifier.changed.connect(self.render_again)

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
        return self._source

    def append_text(self, text: str) -> None:
        """Add text that came; paragraphs that ended become Markdown."""
        self._source += text
        self._pending += text
        finished, rest = split_finished(self._pending)
        cursor = self._tail_cursor()
        if not finished:
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(text, QTextCharFormat())
            return
        cursor.beginEditBlock()
        cursor.removeSelectedText()
        for paragraph in finished:
            self._insert(cursor, paragraph)
        self._tail = cursor.position()
        self._pending = rest
        cursor.insertText(rest, QTextCharFormat())
        cursor.endEditBlock()

    def finish(self) -> None:
        """Render the last paragraph: the text is complete."""
        if not self._pending.strip():
            cursor = self._tail_cursor()
            cursor.removeSelectedText()
            self._drop_empty_end()
            self._pending = ""
            return
        cursor = self._tail_cursor()
        cursor.beginEditBlock()
        cursor.removeSelectedText()
        self._insert(cursor, self._pending)
        self._tail = cursor.position()
        self._pending = ""
        cursor.endEditBlock()
        self._drop_empty_end()

    def set_plain(self, text: str) -> None:
        """Show a text literally."""
        self._source = text
        self.setPlainText(text)

    def render_again(self) -> None:
        """Draw in the colours of now."""
        if self._tail == 0 and not self._pending:
            return
        source, growing = self._source, bool(self._pending)
        self.clear()
        self._source = self._pending = ""
        self._tail = 0
        self.append_text(source)
        if not growing:
            self.finish()

    def _tail_cursor(self) -> QTextCursor:
        cursor = QTextCursor(self.document())
        cursor.setPosition(min(self._tail, max(0, self.document().characterCount() - 1)))
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        return cursor

    def _insert(self, cursor: QTextCursor, markdown: str) -> None:
        code = _code_of(markdown)
        if code is not None:
            self._insert_code(cursor, code)
            return
        made = QTextDocument()
        made.setDefaultFont(self.font())
        made.setMarkdown(markdown, _FEATURES)
        _images_as_text(made)
        _decorate(made)
        start = cursor.position()
        cursor.setBlockFormat(made.firstBlock().blockFormat())
        cursor.insertFragment(QTextDocumentFragment(made))
        self._space(start, cursor)
        cursor.insertBlock(_plain_shape(), QTextCharFormat())

    def _insert_code(self, cursor: QTextCursor, code: str) -> None:
        # The empty line that Qt keeps before a frame is made as thin as it can be.
        cursor.setBlockFormat(_thin_shape())
        frame = QTextFrameFormat()
        frame.setBackground(theme.color("raised"))
        frame.setPadding(10)
        frame.setBottomMargin(6)
        look = QTextCharFormat()
        look.setFontFamilies([theme.mono_font().family()])
        look.setProperty(QTextCharFormat.Property.FontPixelSize, 12)
        made = cursor.insertFrame(frame)
        cursor.setBlockFormat(QTextBlockFormat())
        cursor.insertText(code, look)
        cursor.setPosition(made.lastPosition() + 1)
        cursor.setBlockFormat(_plain_shape())
        cursor.setCharFormat(QTextCharFormat())

    def _space(self, start: int, cursor: QTextCursor) -> None:
        first = self.document().findBlock(start)
        following = first.next()
        if not first.text() and following.isValid() and following.position() <= cursor.position():
            if following.textList() is not None:
                # The list came into a line of its own and left this one empty.
                empty = QTextCursor(first)
                empty.deleteChar()
            else:
                QTextCursor(first).setBlockFormat(_thin_shape())
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
            cursor.setBlockFormat(_thin_shape())

    def _fit(self) -> None:
        height = int(self.document().size().height()) + 2
        if height != self.height():
            self.setFixedHeight(height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def sizeHint(self) -> QSize:
        return QSize(400, int(self.document().size().height()) + 2)


def _plain_shape() -> QTextBlockFormat:
    shape = QTextBlockFormat()
    shape.setLineHeight(140, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
    shape.setBottomMargin(6)
    return shape


def _thin_shape() -> QTextBlockFormat:
    shape = QTextBlockFormat()
    shape.setLineHeight(2, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
    return shape


def _code_of(markdown: str) -> str | None:
    """Return the code in a paragraph that is one fenced block, or None."""
    lines = markdown.strip("\n").split("\n")
    mark = lines[0].lstrip()[:3]
    if mark not in ("```", "~~~"):
        return None
    closed = len(lines) > 1 and lines[-1].strip().startswith(mark) and not lines[-1].strip().strip(mark[0])
    return "\n".join(lines[1:-1] if closed else lines[1:])


def _images_as_text(document: QTextDocument) -> None:
    """Replace each image by its alternative text and its address, which nothing loads."""
    images = []
    block = document.begin()
    while block.isValid():
        iterator = block.begin()
        while not iterator.atEnd():
            piece = iterator.fragment()
            if piece.isValid() and piece.charFormat().isImageFormat():
                images.append((piece.position(), piece.length(), piece.charFormat().toImageFormat()))
            iterator += 1
        block = block.next()
    for start, length, image in reversed(images):
        words = str(image.property(QTextFormat.Property.ImageAltText) or "").strip()
        cursor = QTextCursor(document)
        cursor.setPosition(start)
        cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
        cursor.insertText(f"[image: {words or image.name()}]", QTextCharFormat())


def _decorate(document: QTextDocument) -> None:
    """Give inline code, links, headings and tables their looks."""
    mono, raised, accent = theme.mono_font(12), theme.color("raised"), theme.color("accent")
    for frame in document.rootFrame().childFrames():
        if isinstance(frame, QTextTable):
            shape = frame.format().toTableFormat()
            shape.setBorder(1)
            shape.setBorderBrush(theme.color("line"))
            shape.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
            shape.setBorderCollapse(True)
            shape.setCellPadding(6)
            frame.setFormat(shape)
    block = document.begin()
    while block.isValid():
        level = block.blockFormat().headingLevel()
        spans = []
        iterator = block.begin()
        while not iterator.atEnd():
            piece = iterator.fragment()
            if piece.isValid():
                spans.append((piece.position(), piece.length(), piece.charFormat()))
            iterator += 1
        for start, length, look in spans:
            change = QTextCharFormat()
            if look.fontFixedPitch():
                change.setFontFamilies([mono.family()])
                change.setProperty(QTextCharFormat.Property.FontPixelSize, 12)
                change.setBackground(raised)
            if look.isAnchor():
                change.setForeground(accent)
            if look.toolTip():
                # The title of a link is shown as a tooltip, which takes HTML and loads its images.
                change.setToolTip(plain_tooltip(look.toolTip()))
            if level:
                change.setProperty(QTextCharFormat.Property.FontPixelSize, {1: 17, 2: 15}.get(level, 14))
                change.setProperty(QTextCharFormat.Property.FontSizeAdjustment, 0)
                change.setFontWeight(QFont.Weight.DemiBold)
            cursor = QTextCursor(document)
            cursor.setPosition(start)
            cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
            cursor.mergeCharFormat(change)
        block = block.next()
