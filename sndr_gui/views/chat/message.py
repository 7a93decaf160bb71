"""One message of a conversation: its text, its tool calls, what was measured, and what to do with it."""

import json

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from sndr_gui.models.chat.page import Message
from sndr_gui.views.chat.rich_text import MessageText
from sndr_gui.views.widgets.buttons import button, icon_button
from sndr_gui.views.widgets.copying import CopyButton, CopyField
from sndr_gui.views.widgets.labels import ElidedLabel, set_text, text
from sndr_gui.views.widgets.layout import clear, row
from sndr_gui.views.widgets.problems import ProblemBox

_LONGEST_NAME, _LONGEST_PRETTY = 120, 8_000


class MessageView(QWidget):
    """Shows one message.

    Signals:
        regenerate_wanted: answer again
        curl_wanted: copy the request as a command line
        link_chosen: a link in the text was clicked
    """

    regenerate_wanted = Signal()
    curl_wanted = Signal()
    link_chosen = Signal(str)

    def __init__(self, message: Message) -> None:
        super().__init__()
        self._message = message
        mine = message.role == "user"
        self.body = MessageText("Your message" if mine else "Answer")
        self.body.link_chosen.connect(self.link_chosen)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(8)
        if mine:
            bubble = QFrame()
            bubble.setObjectName("bubble")
            inside = QHBoxLayout(bubble)
            inside.setContentsMargins(16, 10, 16, 10)
            inside.addWidget(self.body)
            outer.addWidget(bubble)
            self.body.set_plain(message.text)
            return
        self.thought = text("", "muted", wrap=True)
        self.thought.hide()
        self._show_thought = button("Show reasoning", self._on_thought, kind="flat")
        self._show_thought.hide()
        self._calls = QVBoxLayout()
        self._calls.setSpacing(8)
        self._shown_calls = ""
        self.problem = ProblemBox()
        self.problem.hide()
        self.metrics = ElidedLabel("", "muted")
        self.copy = CopyButton("the answer")
        self.curl = icon_button("terminal", "Copy the request as curl", self.curl_wanted.emit)
        self.regenerate = icon_button("rotate-cw", "Regenerate", self.regenerate_wanted.emit)
        for control in (self.copy, self.curl, self.regenerate):
            control.hide()
        outer.addLayout(row(self._show_thought, None))
        outer.addWidget(self.thought)
        outer.addWidget(self.body)
        outer.addLayout(self._calls)
        outer.addWidget(self.problem)
        line = row(self.copy, self.curl, self.regenerate, self.metrics, spacing=4)
        line.setStretch(3, 1)
        outer.addLayout(line)
        if message.text:
            self.body.append_text(message.text)
        self.refresh()

    def append_text(self, piece: str) -> None:
        """Add text that came."""
        self.body.append_text(piece)
        self.body.setVisible(True)

    def set_can_regenerate(self, can: bool) -> None:
        """Offer to answer again, on the last answer only."""
        if self._message.role != "user":
            self.regenerate.setVisible(can and self._message.state != "streaming")

    def refresh(self) -> None:
        """Show the state and the measurements of now."""
        message = self._message
        if message.role == "user":
            return
        over = message.state != "streaming"
        set_text(self.metrics, message.metrics())
        self.body.setVisible(bool(message.text))
        self._show_thought.setVisible(bool(message.reasoning))
        if self.thought.isVisible():
            set_text(self.thought, message.reasoning)
        self._refresh_calls()
        self.problem.setVisible(message.problem is not None)
        if message.problem is not None:
            self.problem.show_problem(message.problem)
        if over:
            self.body.finish()
            self.copy.set_content(message.text)
        self.copy.setVisible(over and bool(message.text))
        self.curl.setVisible(over)

    def _refresh_calls(self) -> None:
        calls = list(self._message.calls.values())
        shown = "\x00".join(f"{call.name} {call.arguments}" for call in calls)
        if shown == self._shown_calls:
            return
        self._shown_calls = shown
        clear(self._calls)
        for call in calls:
            card = QFrame()
            card.setObjectName("card")
            inside = QVBoxLayout(card)
            inside.setContentsMargins(14, 10, 14, 10)
            inside.setSpacing(6)
            inside.addWidget(text(f"Tool call: {call.name[:_LONGEST_NAME]}", name="h2"))
            inside.addWidget(CopyField(_pretty(call.arguments), "the arguments", wraps=True))
            self._calls.addWidget(card)

    def _on_thought(self) -> None:
        shown = not self.thought.isVisible()
        set_text(self.thought, self._message.reasoning)
        self.thought.setVisible(shown)
        self._show_thought.setText("Hide reasoning" if shown else "Show reasoning")


def _pretty(arguments: str) -> str:
    if len(arguments) > _LONGEST_PRETTY:
        return arguments
    try:
        return json.dumps(json.loads(arguments), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments
