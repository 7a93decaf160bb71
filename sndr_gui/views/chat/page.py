"""Chat: the conversation, the composer, and how to answer."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from sndr_gui.kit.shortcuts import SHORTCUTS, keys
from sndr_gui.models.chat.page import EXAMPLES, ChatModel, Options
from sndr_gui.views.chat.message import MessageView
from sndr_gui.views.engine.choice import EngineChoice
from sndr_gui.views.widgets.buttons import button
from sndr_gui.views.widgets.cards import Card, EmptyState
from sndr_gui.views.widgets.copying import copy
from sndr_gui.views.widgets.fields import NumberField
from sndr_gui.views.widgets.labels import restyle, set_text, text
from sndr_gui.views.widgets.layout import GAP, MARGIN, clear, column, row, scrolling
from sndr_gui.views.widgets.page import Page

WIDTH = 820
MOST_LINES = 8


class Composer(QFrame):
    """The field for the next message: Enter sends, Shift+Enter begins a line.

    Signals:
        sent: the text to send
        refused: nothing can be sent now; the text stays
    """

    sent = Signal(str)
    refused = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("composerbox")
        self.edit = QPlainTextEdit()
        self.edit.setObjectName("composer")
        self.edit.setAccessibleName("Message")
        self.edit.setPlaceholderText("Message the model…   Enter sends, Shift+Enter begins a new line")
        self.edit.setTabChangesFocus(True)
        self.edit.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.edit.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.edit.document().setDocumentMargin(2)
        self.edit.installEventFilter(self)
        self.edit.document().documentLayout().documentSizeChanged.connect(self._fit)
        self.edit.textChanged.connect(self._on_text)
        self._can_send = False
        self.send = button("Send", self._on_send, kind="primary", icon="send", hint="Send  (Enter)")
        self.stop = button(
            "Stop",
            icon="square",
            shortcut=keys("stop answer"),
            hint="Stop the answer and keep its text; Esc does the same",
        )
        line = QHBoxLayout(self)
        line.setContentsMargins(12, 8, 8, 8)
        line.setSpacing(8)
        line.addWidget(self.edit, 1, Qt.AlignmentFlag.AlignVCenter)
        line.addWidget(self.send, 0, Qt.AlignmentFlag.AlignBottom)
        line.addWidget(self.stop, 0, Qt.AlignmentFlag.AlignBottom)
        self._fit()
        self._on_text()

    def set_can_send(self, can_send: bool) -> None:
        """Allow sending or not; an empty message is not sent in any case."""
        self._can_send = can_send
        self._on_text()

    def _on_text(self) -> None:
        self.send.setEnabled(self._can_send and bool(self.edit.toPlainText().strip()))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            if enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
                self._on_send()
                return True
        elif kind in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.setProperty("active", "true" if kind == QEvent.Type.FocusIn else "")
            restyle(self)
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


class ChatView(Page):
    """The page of one conversation."""

    def __init__(self, model: ChatModel, open_launch: Callable[[], None]) -> None:
        super().__init__("Chat")
        self.model = model
        self._views: list[MessageView] = []
        self.options = button("Options", self._on_options, icon="sliders-horizontal", hint="Chat options")
        self.options.setCheckable(True)
        self.new = button(
            "New chat", model.new_chat, icon="plus", shortcut=keys("new chat"), hint="Start over"
        )
        self.tools.addWidget(self.options)
        self.tools.addWidget(self.new)
        self.body.setContentsMargins(0, 0, 0, 18)
        self.choice = EngineChoice(model.session.state, shown=lambda: model.engine, choose=model.choose)
        self.below_header.addWidget(self.choice)
        self.panel = _OptionsCard(model)
        self.panel.hide()
        self._lines = QVBoxLayout()
        self._lines.setSpacing(18)
        inner = QWidget()
        inner.setObjectName("canvas")
        inner.setMaximumWidth(WIDTH)
        inner.setLayout(column(self._lines, None))
        canvas = QWidget()
        canvas.setObjectName("canvas")
        around = QHBoxLayout(canvas)
        around.setContentsMargins(MARGIN, 4, MARGIN, 4)
        around.addStretch(1)
        around.addWidget(inner, 100)
        around.addStretch(1)
        self.area = scrolling(canvas)
        self.area.setAccessibleName("Conversation")
        self._bar = self.area.verticalScrollBar()
        self._bar.rangeChanged.connect(self._on_grown)
        self._bar.valueChanged.connect(self._on_scrolled)
        self._follow = True
        self.empty = self._make_empty(open_launch)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.empty)
        self._stack.addWidget(self.area)
        self.again = button("Start", model.start_engine, kind="primary", icon="rotate-cw")
        self.go_on = button("Continue", model.go_on, kind="primary", icon="message-square")
        self._offer_text = text("", "muted", wrap=True)
        self.offer = QWidget()
        self.offer.setMaximumWidth(WIDTH)
        self.offer.setLayout(row(self._offer_text, self.again, self.go_on))
        self.composer = Composer()
        self.composer.setMaximumWidth(WIDTH)
        self.composer.sent.connect(self._on_sent)
        self.composer.refused.connect(self._on_refused)
        self.composer.stop.clicked.connect(model.stop)
        # Only while an answer comes, and only here: Esc closes the command palette, which lies over the page.
        self._escape = QShortcut(QKeySequence(SHORTCUTS["stop answer"].also), self, model.stop)
        self._escape.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        lower = row(None, spacing=0)
        lower.setContentsMargins(MARGIN, 0, MARGIN + 10, 0)
        lower.addLayout(column(self.offer, self.composer), 100)
        lower.addStretch(1)
        upper = row(self.panel)
        upper.setContentsMargins(MARGIN, 0, MARGIN, 0)
        self.body.addLayout(upper)
        self.body.addWidget(self._stack, 1)
        self.body.addLayout(lower)
        model.added.connect(self._on_added)
        model.appended.connect(self._on_appended)
        model.message_changed.connect(self._on_message)
        model.cleared.connect(self._on_cleared)
        model.busy_changed.connect(self._on_available)
        model.available_changed.connect(self._on_available)
        self._on_available()

    def _make_empty(self, open_launch: Callable[[], None]) -> EmptyState:
        self.start = button("Start", self.model.start_engine, kind="primary", icon="play")
        self.launch = button("Choose a model", open_launch, icon="rocket", hint="Open Launch")
        self.examples = []
        lines = QVBoxLayout()
        lines.setSpacing(8)
        for sentence in EXAMPLES:
            example = button(sentence, kind="example", hint="Send this")
            example.setFixedWidth(460)
            example.clicked.connect(self._on_example)
            self.examples.append(example)
            lines.addWidget(example)
        self.other = button("Continue", self.model.go_on, kind="primary", icon="message-square")
        return EmptyState(
            "message-square", "Ask the model something", "", row(self.start, self.other, self.launch), lines
        )

    def set_shown(self, shown: bool) -> None:
        if shown:
            self._on_available()
            self.composer.edit.setFocus()

    def _on_example(self) -> None:
        example = self.sender()
        if isinstance(example, QPushButton) and example in self.examples:
            self.model.send(EXAMPLES[self.examples.index(example)])

    def _on_options(self) -> None:
        self.panel.setVisible(self.options.isChecked())

    def _on_sent(self, content: str) -> None:
        self._follow = True
        self.model.send(content)

    def _on_refused(self) -> None:
        why = self.model.blocked_reason or "The last answer is still coming; Esc stops it."
        self.model.session.notices.info("chat", why)

    def _on_available(self) -> None:
        model = self.model
        self.choice.refresh()
        set_text(self.subtitle, model.blocked_reason or f"{model.model}  ·  {model.command} does the same")
        self.composer.set_can_send(model.available and not model.busy)
        self.composer.send.setVisible(not model.busy)
        self.composer.stop.setVisible(model.busy)
        self._escape.setEnabled(model.busy)
        set_text(
            self.empty.sentence,
            model.blocked_reason or "Nothing that you write leaves this machine. Try one of these:",
        )
        self._offer_start()
        for example in self.examples:
            example.setVisible(model.available)
        self._stack.setCurrentIndex(1 if model.messages else 0)
        for view in self._views:
            view.set_can_regenerate(model.available and not model.busy and view is self._views[-1])

    def _offer_start(self) -> None:
        model = self.model
        none_runs = not model.model and model.session.connection.connected
        words = model.start_label
        for made in (self.start, self.again):
            made.setText(words)
            made.setAccessibleName(words)
            made.setVisible(none_runs and bool(words))
            made.setEnabled(words != "Starting…")
        other = model.other_label
        for made in (self.other, self.go_on):
            made.setText(other)
            made.setAccessibleName(other)
            made.setVisible(none_runs and bool(other))
        self.launch.setVisible(none_runs)
        # In a conversation the offer stands above the composer, where the eyes are.
        self.offer.setVisible(none_runs and bool(words or other) and bool(model.messages))
        set_text(self._offer_text, model.blocked_reason)

    def _on_added(self, place: int) -> None:
        message = self.model.messages[place]
        view = MessageView(message)
        view.regenerate_wanted.connect(self.model.regenerate)
        view.curl_wanted.connect(self._on_curl)
        view.link_chosen.connect(self._on_link)
        self._views.append(view)
        self._lines.addWidget(view)
        self._on_available()

    def _on_appended(self, place: int, piece: str) -> None:
        if place < len(self._views):
            self._views[place].append_text(piece)

    def _on_message(self, place: int) -> None:
        if place < len(self._views):
            self._views[place].refresh()

    def _on_cleared(self) -> None:
        self._views.clear()
        clear(self._lines)
        self._on_available()
        self.composer.edit.setFocus()

    def _on_curl(self) -> None:
        view = self.sender()
        if isinstance(view, MessageView):
            copy(self.model.as_curl(self._views.index(view)))
            self.model.session.notices.info("curl", "The curl command is copied.")

    def _on_link(self, address: str) -> None:
        self.model.session.notices.info(
            "link", f"The answer links to {address}", action_text="Copy", action=lambda: copy(address)
        )

    def _on_grown(self, _low: int, high: int) -> None:
        if self._follow:
            self._bar.setValue(high)
            # A layout that is still settling moves the end once more.
            QTimer.singleShot(0, self._bar, self._to_end)

    def _to_end(self) -> None:
        if self._follow:
            self._bar.setValue(self._bar.maximum())

    def _on_scrolled(self, value: int) -> None:
        self._follow = value >= self._bar.maximum() - 40


class _OptionsCard(Card):
    """The system prompt, the temperature and the longest answer."""

    def __init__(self, model: ChatModel) -> None:
        super().__init__()
        self._model = model
        self.system = QPlainTextEdit()
        self.system.setAccessibleName("System prompt")
        self.system.setPlaceholderText("Instructions for the model")
        self.system.setTabChangesFocus(True)
        self.system.setFixedHeight(74)
        self._warm = NumberField("Temperature", 0.0, 5.0, self._on_edited)
        self._most = NumberField("Max tokens of an answer", 1, 1_000_000, self._on_edited)
        self.temperature, self.tokens = self._warm.edit, self._most.edit
        self.temperature.setPlaceholderText("default")
        self.tokens.setPlaceholderText("no limit")
        self.system.textChanged.connect(self._on_edited)
        for field in (self._warm, self._most):
            field.setFixedWidth(180)
        right = column(
            row(text("Temperature", "muted"), None, self._warm),
            row(text("Max tokens", "muted"), None, self._most),
            None,
        )
        line = row(column(text("System prompt", "muted"), self.system, spacing=4), spacing=GAP * 2)
        line.addLayout(right)
        line.setStretch(0, 1)
        self.body.addLayout(line)

    def _on_edited(self) -> None:
        wrong = self._warm.error or self._most.error
        name = "Temperature" if self._warm.error else "Max tokens"
        options = Options(self.system.toPlainText(), self._warm.value, self._most.count)
        self._model.set_options(options, f"{name}: {wrong}" if wrong else "")
