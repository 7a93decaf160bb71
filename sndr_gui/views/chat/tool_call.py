"""One call of a tool: its name and the beginning of its arguments, and all of them unfolded."""

from __future__ import annotations

import json

from PySide6.QtWidgets import QFrame, QVBoxLayout

from engine_host.client import visible
from engine_host.protocol.language import tr
from sndr_gui.models.chat.message import ToolCall
from sndr_gui.views.chat.folding import FoldButton
from sndr_gui.views.chat.rich_text import MessageText
from sndr_gui.views.widgets.labels import ElidedLabel, set_text
from sndr_gui.views.widgets.layout import row

_LONGEST_NAME, _LONGEST_PRETTY, _BEGINNING = 80, 20_000, 300


class ToolCallView(QFrame):
    """Shows a call, folded until somebody wants its arguments."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.setObjectName("inset")
        self._call = ToolCall()
        self._shown: str | None = None
        self.fold = FoldButton("", tr("the arguments of tool call {number}", number=number))
        self.fold.unfolded.connect(self._on_fold)
        self.beginning = ElidedLabel("", "muted", "mono")
        self.beginning.setProperty("tone", "muted")
        self.arguments: MessageText | None = None
        head = row(self.fold, self.beginning, spacing=6)
        head.setStretch(1, 1)
        self._lines = QVBoxLayout(self)
        self._lines.setContentsMargins(4, 4, 10, 4)
        self._lines.setSpacing(4)
        self._lines.addLayout(head)

    def show_call(self, call: ToolCall) -> None:
        """Show what came of it."""
        self._call = call
        name = visible(call.name[:_LONGEST_NAME]) or tr("a tool")
        self.fold.setText(tr("Tool call: {name}", name=name.replace("&", "&&")))
        set_text(self.beginning, visible(call.arguments[:_BEGINNING]).replace("\n", " "))
        self._draw()

    def _on_fold(self, shown: bool) -> None:
        if shown and self.arguments is None:
            self.arguments = MessageText(tr("Arguments of the tool call"))
            self._lines.addWidget(self.arguments)
        if self.arguments is not None:
            self.arguments.setVisible(shown)
        self.beginning.setVisible(not shown)
        self._draw()

    def _draw(self) -> None:
        if self.arguments is None or not self.fold.isChecked() or self._shown == self._call.arguments:
            return
        self._shown = self._call.arguments
        self.arguments.show_code(pretty(self._call.arguments), "json")


def pretty(arguments: str) -> str:
    """Return JSON with its lines indented; what is none, or not yet, as it is."""
    if len(arguments) > _LONGEST_PRETTY:
        return arguments
    try:
        return json.dumps(json.loads(arguments), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments
