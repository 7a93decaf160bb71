"""Chat: one conversation, or two side by side, the field for the next message, settings and history."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QHBoxLayout,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from engine_host.protocol.engines import Engine
from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.kit.shortcuts import SHORTCUTS, keys
from sndr_gui.models.chat.page import EXAMPLES, ChatModel
from sndr_gui.views.chat.composer import Composer
from sndr_gui.views.chat.history import HistoryPanel, margins_around
from sndr_gui.views.chat.lane import WIDTH, LaneView
from sndr_gui.views.chat.message import MessageView
from sndr_gui.views.chat.options import OptionsCard
from sndr_gui.views.engine.choice import EngineChoice
from sndr_gui.views.shortcuts.rebinding import NAMES_KEYS
from sndr_gui.views.widgets.buttons import button, icon_button, tip
from sndr_gui.views.widgets.cards import EmptyState
from sndr_gui.views.widgets.labels import Paragraph, set_text, text
from sndr_gui.views.widgets.layout import GAP, MARGIN, clear, column, row
from sndr_gui.views.widgets.page import Page

_FILES = "Markdown (*.md);;JSON, with every branch (*.json)"


class ChatView(Page):
    """The page of conversations."""

    def __init__(self, model: ChatModel, open_launch: Callable[[], None]) -> None:
        super().__init__(tr("Chat"))
        self.model = model
        self.lanes: list[LaneView] = []
        self._make_tools()
        self.body.setContentsMargins(0, 0, 0, 18)
        self.choice = EngineChoice(model.session.state, shown=self._engine, choose=model.choose)
        self.below_header.addWidget(self.choice)
        self.panel = OptionsCard(model)
        self.panel.hide()
        self.empty = self._make_empty(open_launch)
        self._columns = QHBoxLayout()
        self._columns.setContentsMargins(0, 0, 0, 0)
        self._columns.setSpacing(0)
        conversation = QWidget()
        conversation.setLayout(self._columns)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.empty)
        self._stack.addWidget(conversation)
        lower = self._make_lower()
        upper = row(self.panel)
        upper.setContentsMargins(MARGIN, 0, MARGIN, 0)
        right = column(self._stack, lower, spacing=GAP)
        right.setStretch(0, 1)
        self.history = HistoryPanel(model)
        self._history_place = margins_around(self.history)
        # The button "New chat" and the rest of the page do not move when the list comes.
        both = row(self._history_place, spacing=0)
        both.addLayout(right, 1)
        self.body.addLayout(upper)
        self.body.addLayout(both, 1)
        self._connect()
        self._on_shown()

    def _make_tools(self) -> None:
        model = self.model
        self.show_history = icon_button("history", tr("Conversations that were kept"), self._on_history)
        self.compare = icon_button("columns-2", tr("Ask two models side by side"), self._on_compare)
        self.save = icon_button("download", tr("Export this conversation"), self._on_export)
        self.options = button(tr("Options"), self._on_options, icon="sliders-horizontal")
        for made, name, does in (
            (self.show_history, "history", tr("Conversations that were kept")),
            (self.compare, "compare", tr("Ask two models side by side")),
            (self.save, "export chat", tr("Export this conversation as Markdown or JSON")),
            (self.options, "chat options", tr("System prompt and sampling of this conversation")),
        ):
            made.setShortcut(keys(name))
            made.setToolTip(tip(does, keys(name)))
        for made in (self.show_history, self.compare, self.options):
            made.setCheckable(True)
        self.new = button(
            tr("New chat"), model.new_chat, icon="plus", shortcut=keys("new chat"), hint=tr("Start over")
        )
        self.tools.setSpacing(6)
        for tool in (self.show_history, self.compare, self.save, self.options, self.new):
            self.tools.addWidget(tool)

    def _make_lower(self) -> QHBoxLayout:
        model = self.model
        self.again = button(tr("Start"), model.start_engine, kind="primary", icon="rotate-cw")
        self.go_on = button(tr("Continue"), model.go_on, kind="primary", icon="message-square")
        self._offer_text = text("", "muted", wrap=True)
        self.offer = QWidget()
        self.offer.setMaximumWidth(WIDTH)
        self.offer.setLayout(row(self._offer_text, self.again, self.go_on))
        self.composer = Composer()
        self.composer.setMaximumWidth(WIDTH)
        self.in_turns = QCheckBox(tr("One after the other"))
        self.in_turns.setToolTip(tip(tr("The second model begins when the first has ended")))
        self.in_turns.toggled.connect(self._on_turns)
        shared = text(
            tr("Answering at once they share this machine: each is slower than alone."), "muted", wrap=True
        )
        self.sharing = QWidget()
        self.sharing.setLayout(row(self.in_turns, shared, spacing=12))
        self._shared = shared
        lower = row(None, spacing=0)
        lower.setContentsMargins(MARGIN, 0, MARGIN + 10, 0)
        lower.addLayout(column(self.offer, self.sharing, self.composer), 100)
        lower.addStretch(1)
        return lower

    def _make_empty(self, open_launch: Callable[[], None]) -> EmptyState:
        self.start = button(tr("Start"), self.model.start_engine, kind="primary", icon="play")
        self.launch = button(tr("Choose a model"), open_launch, icon="rocket", hint=tr("Open Launch"))
        self.examples = []
        lines = QVBoxLayout()
        lines.setSpacing(8)
        for sentence in EXAMPLES:
            example = button(sentence, kind="example", hint=tr("Send this"))
            example.setFixedWidth(440)
            example.clicked.connect(self._on_example)
            self.examples.append(example)
            lines.addWidget(example)
        self.other = button(tr("Continue"), self.model.go_on, kind="primary", icon="message-square")
        lines.addSpacing(6)
        ways = Paragraph(_ways(), 440)
        ways.setProperty(NAMES_KEYS, True)
        lines.addWidget(ways, 0, Qt.AlignmentFlag.AlignHCenter)
        return EmptyState(
            "message-square",
            tr("Ask the model something"),
            "",
            row(self.start, self.other, self.launch),
            lines,
        )

    def _connect(self) -> None:
        model = self.model
        self.composer.sent.connect(self._on_sent)
        self.composer.refused.connect(self._on_refused)
        self.composer.edit_wanted.connect(self._on_edit_last)
        self.composer.edit_ended.connect(model.end_editing)
        self.composer.stop.clicked.connect(model.stop)
        # Only while an answer comes, and only here: Esc closes the command palette, which lies over the page.
        self._escape = QShortcut(QKeySequence(SHORTCUTS["stop answer"].also), self, model.stop)
        again = QShortcut(QKeySequence(keys("regenerate")), self, self._on_regenerate)
        for made in (self._escape, again):
            made.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        model.shown_changed.connect(self._on_shown)
        model.busy_changed.connect(self._on_available)
        model.available_changed.connect(self._on_available)
        model.editing_changed.connect(self._on_editing)
        model.title_changed.connect(self._on_title)
        model.history.changed.connect(self._on_history_changed)

    # The columns.

    @property
    def _views(self) -> list[MessageView]:
        return self.lanes[0].views

    @property
    def area(self) -> QWidget:
        """The scroll area of the first column."""
        return self.lanes[0].area

    def _engine(self) -> Engine | None:
        return self.model.engine

    def _on_shown(self) -> None:
        """Show another conversation."""
        clear(self._columns)
        several = len(self.model.lanes) > 1
        self.lanes = [
            LaneView(self.model, lane, number, several)
            for number, lane in enumerate(self.model.lanes, start=1)
        ]
        for view in self.lanes:
            view.changed.connect(self._on_available)
            self._columns.addWidget(view, 1)
        for wide in (self.composer, self.offer):
            wide.setMaximumWidth(2 * WIDTH if several else WIDTH)
        self.panel.fill()
        self._on_history_changed()
        self._on_available()
        self._on_title()
        if self.isVisible():
            self.composer.edit.setFocus()

    def set_shown(self, shown: bool) -> None:
        if shown:
            self._on_available()
            self.composer.edit.setFocus()
            if self.model.history.shown:
                self.model.history.load()

    def _on_available(self) -> None:
        model = self.model
        several = len(model.lanes) > 1
        self.choice.refresh()
        if several:
            self.choice.hide()
        self._say()
        can_send = model.available and not model.busy
        self.composer.set_can_send(can_send)
        self.composer.send.setVisible(not model.busy)
        self.composer.stop.setVisible(model.busy)
        self.composer.stop.setText(tr("Stop both") if several else tr("Stop"))
        self.composer.stop.setAccessibleName(tr("Stop both") if several else tr("Stop"))
        self._escape.setEnabled(model.busy)
        set_text(
            self.empty.sentence,
            model.blocked_reason
            or (
                tr("What you write goes to {host} alone. Try one of these:", host=model.session.host)
                if model.session.host
                else tr("Nothing that you write leaves this machine. Try one of these:")
            ),
        )
        self._offer_start()
        for example in self.examples:
            example.setVisible(model.available)
        self._stack.setCurrentIndex(1 if several or model.messages else 0)
        for view in self.lanes:
            view.refresh()
        self.sharing.setVisible(several)
        self._shared.setVisible(not model.in_turns)
        self.compare.setChecked(several)
        does = tr("Ask two models side by side")
        self.compare.setToolTip(tip(does if several or model.can_compare else _two_needed(), keys("compare")))
        self.save.setEnabled(not model.shown.empty)
        count = model.options.count
        self.options.setText(tr("Options ({count})", count=count) if count else tr("Options"))
        self.panel.refresh()

    def _say(self) -> None:
        model = self.model
        if len(model.lanes) > 1:
            names = formats.listed([lane.partner.name or tr("a model") for lane in model.lanes])
            said = model.blocked_reason or tr("{names}, side by side", names=names)
        else:
            command = " ".join(model.command[:300].split())
            said = model.blocked_reason or tr(
                "{model}  ·  {command} does the same", model=model.model, command=command
            )
        set_text(self.subtitle, said)

    def _offer_start(self) -> None:
        """Offer an engine where the page is empty, and beside the composer where it is not."""
        model = self.model
        for again, label in ((self.start, model.start_label), (self.again, model.start_label)):
            again.setVisible(bool(label))
            again.setEnabled(not model.actions.starting)
            if label:
                again.setText(label)
                again.setAccessibleName(label)
        for go_on in (self.other, self.go_on):
            go_on.setVisible(bool(model.other_label))
            go_on.setText(model.other_label)
            go_on.setAccessibleName(model.other_label)
        self.launch.setVisible(model.running is None)
        offered = bool(model.start_label or model.other_label)
        self.offer.setVisible(bool(model.messages) and offered)
        set_text(self._offer_text, model.blocked_reason)

    # Wishes.

    def focus_filter(self) -> None:
        if not self.model.history.shown:
            self.model.history.set_shown(True)
        self.history.filter.setFocus()
        self.history.filter.selectAll()

    def _on_example(self) -> None:
        example = self.sender()
        if isinstance(example, QPushButton) and example in self.examples:
            self.model.send(EXAMPLES[self.examples.index(example)])

    def _on_options(self) -> None:
        self.panel.setVisible(self.options.isChecked())
        if self.options.isChecked():
            self.panel.system.setFocus()

    def _on_history(self) -> None:
        self.model.history.set_shown(self.show_history.isChecked())

    def _on_history_changed(self) -> None:
        history = self.model.history
        self.show_history.setChecked(history.shown)
        self._history_place.setVisible(history.shown)
        if history.shown and not history.loaded:
            history.load()

    def _on_compare(self) -> None:
        if len(self.model.lanes) > 1:
            self.model.go_on_alone(self.model.lanes[0])
        elif self.model.busy:
            self._on_refused()
        elif not self.model.can_compare:
            self.model.session.notices.info("chat", _two_needed())
        else:
            self.model.compare()
        self._on_available()

    def _on_turns(self, on: bool) -> None:
        self.model.in_turns = on
        self._shared.setVisible(not on)

    def _on_sent(self, content: str) -> None:
        for view in self.lanes:
            view.follow()
        self.model.send(content)

    def _on_refused(self) -> None:
        why = self.model.blocked_reason or tr("The last answer is still coming; Esc stops it.")
        self.model.session.notices.info("chat", why)

    def _on_edit_last(self) -> None:
        self.model.edit(self.model.lanes[0])

    def _on_regenerate(self) -> None:
        self.model.regenerate()

    def _on_editing(self) -> None:
        self.composer.set_editing(self.model.editing is not None, self.model.edited_text)

    def _on_title(self) -> None:
        title = self.model.shown.title
        set_text(self.title, tr("Chat") if not title else _shortened(title))

    def _on_export(self) -> None:
        name = re.sub(r"[^\w .-]+", "-", self.model.shown.title, flags=re.ASCII).strip(" .-")[:60] or "chat"
        dialog = QFileDialog(self, tr("Export this conversation"), str(Path.home() / f"{name}.md"), _FILES)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.filterSelected.connect(_SuffixOf(dialog))
        dialog.fileSelected.connect(self.model.export)
        dialog.open()


class _SuffixOf:
    """Gives the file of a dialog the ending of the form that was chosen."""

    def __init__(self, dialog: QFileDialog) -> None:
        self._dialog = dialog
        dialog.setDefaultSuffix("md")

    def __call__(self, chosen: str) -> None:
        suffix = "json" if "json" in chosen else "md"
        self._dialog.setDefaultSuffix(suffix)
        for file in self._dialog.selectedFiles()[:1]:
            self._dialog.selectFile(f"{Path(file).stem}.{suffix}")


def _ways() -> str:
    return tr(
        "{history} earlier conversations   {compare} two models side by side\n↑ edit the last question",
        history=keys("history"),
        compare=keys("compare"),
    )


def _two_needed() -> str:
    return tr("Two models side by side need two engines that run: start another one on Launch")


def _shortened(title: str) -> str:
    return title if len(title) <= 60 else f"{title[:59]}…"
