"""The field for the next message, and for a question that is edited."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit.shortcuts import keys
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.labels import restyle, text
from sndr_gui.views.widgets.layout import row

MOST_LINES = 8


class Composer(QFrame):
    """The field for the next message: Enter sends, Shift+Enter begins a line.

    Signals:
        sent: the text to send
        refused: nothing can be sent now; the text stays
        edit_wanted: the last question is to be edited
        edit_ended: the edited question is to stay as it was
    """

    sent = Signal(str)
    refused = Signal()
    edit_wanted = Signal()
    edit_ended = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("composerbox")
        self.edit = QPlainTextEdit()
        self.edit.setObjectName("composer")
        self.edit.setAccessibleName(tr("Message"))
        self.edit.setPlaceholderText(tr("Message the model…   Enter sends, Shift+Enter begins a new line"))
        self.edit.setTabChangesFocus(True)
        self.edit.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.edit.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.edit.document().setDocumentMargin(2)
        self.edit.installEventFilter(self)
        self.edit.document().documentLayout().documentSizeChanged.connect(self._fit)
        self.edit.textChanged.connect(self._on_text)
        self._can_send = False
        self._draft = ""
        self.send = button(tr("Send"), self._on_send, kind="primary", icon="send", hint=tr("Send  (Enter)"))
        self.stop = button(
            tr("Stop"),
            icon="square",
            shortcut=keys("stop answer"),
            hint=tr("Stop the answer and keep its text; Esc does the same"),
        )
        self.leave = button(
            tr("Cancel"), self.edit_ended.emit, kind="flat", hint=tr("Leave the question as it was")
        )
        self.leave.setAccessibleName(tr("Cancel editing"))
        self.editing = QWidget()
        note = text(
            tr("Editing a question. The answers that it has are kept as a branch."), "muted", wrap=True
        )
        self.editing.setLayout(row(note, self.leave))
        self.editing.hide()
        line = row(spacing=8)
        line.addWidget(self.edit, 1, Qt.AlignmentFlag.AlignVCenter)
        line.addWidget(self.send, 0, Qt.AlignmentFlag.AlignBottom)
        line.addWidget(self.stop, 0, Qt.AlignmentFlag.AlignBottom)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(12, 8, 8, 8)
        lines.setSpacing(4)
        lines.addWidget(self.editing)
        lines.addLayout(line)
        self._fit()
        self._on_text()

    def set_can_send(self, can_send: bool) -> None:
        """Allow sending or not; an empty message is not sent in any case."""
        self._can_send = can_send
        self._on_text()

    def set_editing(self, editing: bool, question: str = "") -> None:
        """Put a question into the field, or the text that was typed before it."""
        if editing:
            if self.editing.isHidden():
                self._draft = self.edit.toPlainText()
            self.edit.setPlainText(question)
            self.edit.selectAll()
            self.edit.setFocus()
        elif not self.editing.isHidden():
            self.edit.setPlainText(self._draft)
            self._draft = ""
        self.editing.setVisible(editing)

    def _on_text(self) -> None:
        self.send.setEnabled(self._can_send and bool(self.edit.toPlainText().strip()))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            return self._on_key(event)
        if kind in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.setProperty("active", "true" if kind == QEvent.Type.FocusIn else "")
            restyle(self)
        return False

    def _on_key(self, event: QKeyEvent) -> bool:
        key = event.key()
        shifted = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not shifted:
            self._on_send()
            return True
        if key == Qt.Key.Key_Up and not event.modifiers() and not self.edit.toPlainText():
            self.edit_wanted.emit()
            return True
        if key == Qt.Key.Key_Escape and not self.editing.isHidden():
            self.edit_ended.emit()
            return True
        return False

    def _on_send(self) -> None:
        content = self.edit.toPlainText().strip()
        if not content:
            return
        if self.send.isEnabled():
            self.edit.clear()
            self.sent.emit(content)
        else:
            self.refused.emit()

    def _fit(self) -> None:
        # A plain text's document measures itself in lines as drawn: wrapped ones and soft breaks count.
        lines = min(MOST_LINES, max(1, round(self.edit.document().size().height())))
        self.edit.setFixedHeight(lines * self.edit.fontMetrics().lineSpacing() + 6)
