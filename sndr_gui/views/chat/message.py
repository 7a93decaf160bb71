"""One message of a conversation: its text, its tool calls, what was measured, and what to do with it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from engine_host.protocol.language import tr
from sndr_gui.kit import measured_by
from sndr_gui.kit.tooltip import plain_tooltip
from sndr_gui.models.chat.message import Message
from sndr_gui.views.chat.folding import FoldButton
from sndr_gui.views.chat.rich_text import MessageText
from sndr_gui.views.chat.tool_call import ToolCallView
from sndr_gui.views.widgets.buttons import icon_button
from sndr_gui.views.widgets.copying import CopyButton
from sndr_gui.views.widgets.labels import ElidedLabel, set_text, text, unbroken
from sndr_gui.views.widgets.layout import row
from sndr_gui.views.widgets.problems import ProblemBox


class MessageView(QWidget):
    """Shows one message.

    Signals:
        regenerate_wanted: answer again
        edit_wanted: edit the question
        curl_wanted: copy the request as a command line
        sibling_wanted: show the branch so many before or after this one
        link_chosen: a link in the text was clicked
    """

    regenerate_wanted = Signal()
    edit_wanted = Signal()
    curl_wanted = Signal()
    sibling_wanted = Signal(int)
    link_chosen = Signal(str)

    def __init__(self, message: Message, narrow: bool = False) -> None:
        """`narrow`: the figures stand on lines of their own."""
        super().__init__()
        self._message = message
        self.mine = message.role == "user"
        self.body = MessageText(tr("Your message") if self.mine else tr("Answer"))
        self.body.link_chosen.connect(self.link_chosen)
        self.copy = CopyButton(tr("your message") if self.mine else tr("the answer"))
        before = tr("Show the question before") if self.mine else tr("Show the answer before")
        after = tr("Show the next question") if self.mine else tr("Show the next answer")
        self.before = icon_button("chevron-left", before, self._on_before)
        self.after = icon_button("chevron-right", after, self._on_after)
        self.branch = text("", "muted")
        self._branches = QWidget()
        self._branches.setLayout(row(self.before, self.branch, self.after, spacing=0))
        self._branches.hide()
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(6)
        if self.mine:
            self._make_question(outer)
        else:
            self._make_answer(outer, narrow)

    def _make_question(self, outer: QVBoxLayout) -> None:
        bubble = QFrame()
        bubble.setObjectName("bubble")
        inside = QHBoxLayout(bubble)
        inside.setContentsMargins(16, 10, 6, 10)
        inside.setSpacing(2)
        inside.addWidget(self.body, 1)
        outer.addWidget(bubble)
        self.body.set_plain(self._message.text)
        self.copy.set_content(self._message.text)
        self.edit = icon_button("pencil", tr("Edit and send again"), self.edit_wanted.emit)
        for control in (self.copy, self.edit):
            inside.addWidget(control, 0, Qt.AlignmentFlag.AlignTop)
        outer.addLayout(row(None, self._branches, spacing=2))

    def _make_answer(self, outer: QVBoxLayout, narrow: bool) -> None:
        message = self._message
        self.fold = FoldButton("", tr("the reasoning"))
        self.fold.hide()
        self.fold.unfolded.connect(self._on_thought)
        self.thought: MessageText | None = None
        self._thought_place = QVBoxLayout()
        self._thought_place.setContentsMargins(14, 0, 0, 0)
        self._calls = QVBoxLayout()
        self._calls.setSpacing(6)
        self.call_views: list[ToolCallView] = []
        self.problem = ProblemBox()
        self.problem.hide()
        self.metrics = text("", "muted", wrap=True) if narrow else ElidedLabel("", "muted")
        self.curl = icon_button("terminal", tr("Copy the request as curl"), self.curl_wanted.emit)
        self.regenerate = icon_button("rotate-cw", tr("Regenerate"), self.regenerate_wanted.emit)
        for control in (self.copy, self.curl, self.regenerate):
            control.hide()
        outer.addLayout(row(self.fold, None))
        outer.addLayout(self._thought_place)
        outer.addWidget(self.body)
        outer.addLayout(self._calls)
        outer.addWidget(self.problem)
        line = row(self.copy, self.curl, self.regenerate, self._branches, spacing=4)
        if narrow:
            line.addStretch(1)
            outer.addWidget(self.metrics)
        else:
            line.addSpacing(4)
            line.addWidget(self.metrics, 1)
        outer.addLayout(line)
        if message.text:
            self.body.append_text(message.text)
        self.refresh()

    def append_text(self, piece: str) -> None:
        """Add text that came."""
        self.body.append_text(piece)
        self.body.setVisible(True)

    def append_reasoning(self, piece: str) -> None:
        """Add reasoning that came, where it is unfolded."""
        if self.thought is not None:
            self.thought.append_text(piece)
        self.fold.setText(self._message.reasoning_label())
        self.fold.setVisible(True)

    def set_branch(self, number: int, count: int) -> None:
        """Say which of several branches this is."""
        self._branches.setVisible(count > 1)
        set_text(self.branch, tr("{number} of {count}", number=number, count=count))
        self.branch.setAccessibleName(tr("Version {number} of {count}", number=number, count=count))
        self.before.setEnabled(number > 1)
        self.after.setEnabled(number < count)

    def set_free(self, free: bool, can_ask: bool) -> None:
        """Offer what goes only while no answer is coming, and what needs an engine too."""
        self._branches.setEnabled(free)
        if self.mine:
            self.edit.setVisible(free)
        else:
            self.regenerate.setVisible(free and can_ask and self._message.state != "streaming")

    def refresh(self) -> None:
        """Show the state and the measurements of now."""
        message = self._message
        if self.mine:
            return
        over = message.state != "streaming"
        said = message.metrics()
        set_text(self.metrics, unbroken(said) if self.metrics.wordWrap() else said)
        who = measured_by.CLIENT if message.ttft is not None and over else ""
        self.metrics.setToolTip(plain_tooltip(who))
        self.metrics.setAccessibleDescription(who)
        self.body.setVisible(bool(message.text))
        self.fold.setVisible(bool(message.reasoning))
        self.fold.setText(message.reasoning_label())
        self._refresh_calls()
        self.problem.setVisible(message.problem is not None)
        if message.problem is not None:
            self.problem.show_problem(message.problem)
        if over:
            self.body.finish()
            if self.thought is not None:
                self.thought.finish()
            self.copy.set_content(message.text)
        self.copy.setVisible(over and bool(message.text))
        self.curl.setVisible(over)

    def _refresh_calls(self) -> None:
        for number, call in enumerate(self._message.calls.values()):
            if number == len(self.call_views):
                self.call_views.append(ToolCallView(number + 1))
                self._calls.addWidget(self.call_views[-1])
            self.call_views[number].show_call(call)

    def _on_thought(self, shown: bool) -> None:
        if shown and self.thought is None:
            self.thought = MessageText(tr("Reasoning"), "muted")
            self._thought_place.addWidget(self.thought)
            self.thought.append_text(self._message.reasoning)
            if self._message.state != "streaming":
                self.thought.finish()
        if self.thought is not None:
            self.thought.setVisible(shown)

    def _on_before(self) -> None:
        self.sibling_wanted.emit(-1)

    def _on_after(self) -> None:
        self.sibling_wanted.emit(1)
