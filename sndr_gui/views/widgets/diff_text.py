"""A unified diff in colours, to be read, selected and copied."""

from PySide6.QtGui import QSyntaxHighlighter, QTextCharFormat, QTextDocument
from PySide6.QtWidgets import QPlainTextEdit

from sndr_gui.kit import theme


class DiffColours(QSyntaxHighlighter):
    """Colours added and removed lines."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        theme.notifier.changed.connect(self.rehighlight)

    def highlightBlock(self, line: str) -> None:
        """Colour one line by its first character."""
        token = {"+": "good", "-": "bad", "@": "accent"}.get(line[:1])
        if token:
            look = QTextCharFormat()
            look.setForeground(theme.color(token))
            self.setFormat(0, len(line), look)


class DiffView(QPlainTextEdit):
    """Shows a diff, or says that there is none."""

    def __init__(self, name: str, nothing: str) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setAccessibleName(name)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFont(theme.mono_font(11))
        self.setTabChangesFocus(True)
        self.setPlaceholderText(nothing)
        self._colours = DiffColours(self.document())

    def show_diff(self, diff: str) -> None:
        """Show a diff; the place in it stays where the text is the same."""
        if diff != self.toPlainText():
            self.setPlainText(diff)
