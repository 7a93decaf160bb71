"""Looks of what Qt makes of Markdown: images as text, inline code, links, headings and tables."""

from PySide6.QtGui import (
    QFont,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrameFormat,
    QTextTable,
)

from sndr_gui.kit import theme
from sndr_gui.kit.tooltip import plain_tooltip

_FEATURES = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML


def document_of(markdown: str, font: QFont) -> QTextDocument:
    """Return a paragraph of Markdown as a document that loads nothing."""
    made = QTextDocument()
    made.setDefaultFont(font)
    made.setMarkdown(markdown, _FEATURES)
    _images_as_text(made)
    _decorate(made)
    return made


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
