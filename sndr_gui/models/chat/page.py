"""The view-model of Chat: the conversation that is shown, and what is done with it."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from engine_host.client.chats import record
from engine_host.protocol.engines import Engine
from engine_host.protocol.language import tr
from sndr_gui.host.session import Session
from sndr_gui.models.chat.conversation import Conversation
from sndr_gui.models.chat.history import HistoryModel
from sndr_gui.models.chat.lane import Lane
from sndr_gui.models.chat.message import Message
from sndr_gui.models.chat.options import Options
from sndr_gui.models.engine.choice import command_of, other_than
from sndr_gui.models.window.actions import Actions

EXAMPLES = (
    # The model that comes with the program answers these well.
    tr("What is a list comprehension?"),
    tr("How do I read a file in Python?"),
    tr("Tell me a long story about Python."),
)
_SETTLED_MS = 800
"""After a change of the settings, before it is kept: each letter of a system prompt is one."""


class ChatModel(QObject):
    """The model of Chat.

    Signals:
        shown_changed: another conversation is shown, or one with other lanes
        busy_changed: whether an answer is coming
        available_changed: whether there is an engine to talk to
        editing_changed: a question is to be edited in the field for the next message, or not any more
        title_changed: the title of the conversation is new
    """

    shown_changed = Signal()
    busy_changed = Signal(bool)
    available_changed = Signal()
    editing_changed = Signal()
    title_changed = Signal()

    def __init__(self, session: Session, actions: Actions, history: HistoryModel) -> None:
        super().__init__()
        self.session, self.actions, self.history = session, actions, history
        self.options_error = ""
        self.in_turns = False
        """Of two models the second answers after the first: side by side they share the machine."""
        self.editing: int | None = None
        """The number of the question that is edited, among those that are shown, from 0."""
        self._later: list[tuple[Lane, str, int | None]] = []
        self._settled = QTimer(self)
        self._settled.setSingleShot(True)
        self._settled.setInterval(_SETTLED_MS)
        self._settled.timeout.connect(self._save_settings)
        self.shown = self._made(None, Options())
        session.state.engines_changed.connect(self.available_changed)
        session.connection.changed.connect(self.available_changed)
        session.state.models_changed.connect(self.available_changed)
        actions.changed.connect(self.available_changed)
        history.removed.connect(self._on_removed)
        history.renamed.connect(self._on_renamed)

    def _made(self, kept: record.Conversation | None, options: Options) -> Conversation:
        made = Conversation(self.session, self._first, options, kept)
        for lane in made.lanes:
            lane.busy_changed.connect(self._on_lane)
        return made

    def _first(self) -> Engine | None:
        return self.session.state.engine

    # The lanes and their engines.

    @property
    def lanes(self) -> list[Lane]:
        """The columns: one, or two side by side."""
        return self.shown.lanes

    @property
    def messages(self) -> list[Message]:
        """The messages of the first column."""
        return self.lanes[0].messages

    @property
    def busy(self) -> bool:
        """True while an answer is coming, or is to come."""
        return self.shown.busy or bool(self._later)

    @property
    def engine(self) -> Engine | None:
        """The engine of the first column."""
        return self.lanes[0].partner.engine

    @property
    def running(self) -> Engine | None:
        """The same, while it runs."""
        return self.lanes[0].partner.running

    @property
    def model(self) -> str:
        """The same by its public name; empty where it does not run."""
        return self.lanes[0].partner.model

    @property
    def options(self) -> Options:
        """The settings of the conversation."""
        return self.shown.options

    @property
    def command(self) -> str:
        """The command that asks the same."""
        named = ("--model",) if len(self.session.state.live) > 1 else ()
        commands = [
            f'{command_of(self.session.state, lane.partner.engine, "chat", *named)}{self.options.words()} "…"'
            for lane in self.lanes
        ]
        return "\n".join(commands)

    def choose(self, engine: Engine, lane: Lane | None = None) -> None:
        """Go on with this engine; of the first column on the other pages too."""
        lane = lane or self.lanes[0]
        if lane.partner.held or lane is not self.lanes[0]:
            lane.partner.go_on_with(engine)
        if lane is self.lanes[0]:
            self.session.state.choose(engine)
        self.available_changed.emit()

    @property
    def can_compare(self) -> bool:
        """True where a second model can be asked too."""
        return len(self.lanes) == 1 and not self.busy and len(self.session.state.live) > 1

    def compare(self) -> None:
        """Ask a second model beside the first, with the same messages so far."""
        if not self.can_compare:
            return
        first = self.lanes[0].partner.engine
        second = other_than(self.session.state, first)
        if second is None or (first is not None and second.id == first.id):
            second = next(one for one in self.session.state.live if first is None or one.id != first.id)
        lane = self.shown.add_lane(second)
        lane.busy_changed.connect(self._on_lane)
        self._show(self.shown)

    def go_on_alone(self, lane: Lane) -> None:
        """Go on with one of two; the other's messages become a conversation of their own."""
        if len(self.lanes) < 2 or self.busy:
            return
        shown, other = self.shown, next(one for one in self.lanes if one is not lane)
        before = shown.record()
        shown.lanes = [lane]
        if other.nodes:
            apart = self._made(before.model_copy(update={"lanes": (other.kept(),)}), shown.options)
            apart.id = self._made(None, Options()).id
            apart.title = record.title_of(f"{before.title} ({other.partner.name})")
            self.history.save(apart.record())
            if self.history.keep:
                said = tr(
                    "The answers of {name} are a conversation of their own now.", name=other.partner.name
                )
                self.session.notices.info("chat apart", said)
            else:
                said = tr(
                    "The answers of {name} are gone: conversations are not kept.", name=other.partner.name
                )
                undo = partial(self._open, before)
                self.session.notices.info("chat apart", said, action_text=tr("Undo"), action=undo)
        self._keep(shown)
        self._show(shown)

    @property
    def available(self) -> bool:
        """True while a message can be sent."""
        answers = all(lane.partner.serving for lane in self.lanes)
        return self.session.connection.connected and answers and not self.options_error

    @property
    def blocked_reason(self) -> str:
        """The reason why nothing can be sent, in a sentence."""
        if not self.session.connection.connected:
            return self.session.connection.sentence
        if self.options_error:
            return self.options_error
        return next((why for lane in self.lanes if (why := lane.partner.blocked_reason)), "")

    @property
    def other(self) -> Engine | None:
        """The engine to go on with where that of the first column ended."""
        return self.lanes[0].partner.other

    @property
    def failed(self) -> Engine | None:
        """The engine of the first column, when it failed and none runs in its place."""
        return self.lanes[0].partner.failed

    @property
    def start_label(self) -> str:
        """The label of the button that starts an engine; empty where one runs or nothing can start."""
        if not self.session.connection.connected or self.running is not None:
            return ""
        if self.actions.starting:
            return tr("Starting…")
        if (failed := self.failed) is not None:
            return tr("Start {name} again", name=failed.name)
        if self.other is not None:
            return ""
        demo = self.actions.demo_model()
        return tr("Start {name}", name=demo.name) if demo is not None else ""

    @property
    def other_label(self) -> str:
        """The label of the button that goes on with another engine; empty where there is none to offer."""
        if (other := self.other) is None:
            return ""
        return (
            tr("Continue with {name}", name=other.name)
            if self.messages
            else tr("Chat with {name}", name=other.name)
        )

    def go_on(self) -> None:
        """Go on with another engine that runs."""
        if (other := self.other) is not None:
            self.choose(other)

    def start_engine(self) -> None:
        """Start the failed engine again, or the bundled model."""
        if (failed := self.failed) is not None:
            self.actions.relaunch(failed)
        elif (demo := self.actions.demo_model()) is not None:
            self.actions.start_model(demo.id)

    # Asking.

    def set_options(self, options: Options, error: str = "") -> None:
        """Take over the settings; nothing is sent while one of them is invalid."""
        self.shown.options, self.options_error = options, error
        if not self.shown.empty:
            self._settled.start()
        self.available_changed.emit()

    def send(self, text: str) -> None:
        """Send a message, or the edited question in a branch of its own, and stream the answers."""
        # Half of a letter, as some programs put it on the clipboard, is no text that can be sent.
        text = text.encode("utf-8", "replace").decode().strip()
        if not text or self.busy or not self.available:
            return
        number, self.editing = self.editing, None
        if number is not None:
            self.editing_changed.emit()
        work = [(lane, text, None if number is None else lane.question(number)) for lane in self.lanes]
        if self.in_turns:
            self._later = work[1:]
            work = work[:1]
        for lane, asked, place in work:
            lane.ask(asked, self.options, place)
        self._keep(self.shown)

    def edit(self, lane: Lane, place: int | None = None) -> None:
        """Edit a question, the last one where none is named, in the field for the next message."""
        places = [at for at, message in enumerate(lane.messages) if message.role == "user"]
        if self.busy or not places or (place is not None and place not in places):
            return
        self.editing = places.index(place) if place is not None else len(places) - 1
        self.editing_changed.emit()

    @property
    def edited_text(self) -> str:
        """The question that is edited, as it was."""
        place = self.lanes[0].question(self.editing) if self.editing is not None else None
        return self.messages[place].text if place is not None else ""

    def end_editing(self) -> None:
        """Leave the edited question as it was."""
        self.editing = None
        self.editing_changed.emit()

    def regenerate(self, lane: Lane | None = None, place: int = -1) -> None:
        """Answer a question once more, the last one where none is named; the answer before is kept."""
        if self.busy or not self.available:
            return
        for one in [lane] if lane is not None else self.lanes:
            one.regenerate(place if place >= 0 else len(one.path) - 1, self.options)

    def stop(self) -> None:
        """End the answers that are coming; what came is kept."""
        self._later = []
        self.shown.close()

    # Conversations.

    def new_chat(self) -> None:
        """Start over, with the same settings."""
        options = self.options
        self._leave()
        self._show(self._made(None, options))

    def open(self, chat: str) -> None:
        """Show a conversation that was kept."""
        if chat != self.shown.id:
            self.history.open(chat, self._open)

    def _open(self, kept: record.Conversation) -> None:
        self._leave()
        self._show(self._made(kept, Options()))

    def _leave(self) -> None:
        if self._settled.isActive():
            self._settled.stop()
            self._save_settings()
        self.stop()

    def _show(self, conversation: Conversation) -> None:
        self.shown = conversation
        self.options_error = ""
        self.editing = None
        self.shown_changed.emit()
        self.editing_changed.emit()
        self.busy_changed.emit(self.busy)
        self.available_changed.emit()

    def export(self, path: str) -> None:
        """Write the conversation to a file, as JSON where its name ends so, else as Markdown."""
        self.shown.touch()
        self.history.export(self.shown.record(), path)

    def _on_lane(self) -> None:
        # Not a partial with both: it would keep them, for no collector sees what Qt holds of a connection.
        lane = self.sender()
        assert isinstance(lane, Lane)
        conversation = lane.conversation
        if not lane.busy:
            self._keep(conversation)
        if conversation is not self.shown:
            return
        if not conversation.busy and self._later:
            following, text, place = self._later.pop(0)
            if following.partner.serving:
                following.ask(text, self.options, place)
                return
        self.busy_changed.emit(self.busy)

    def _keep(self, conversation: Conversation) -> None:
        if conversation.empty or conversation.removed:
            return
        conversation.touch()
        self.history.save(conversation.record())
        self.title_changed.emit()

    def _save_settings(self) -> None:
        if not self.options_error:
            self._keep(self.shown)

    def _on_removed(self, chat: str) -> None:
        if chat == self.shown.id:
            self.shown.removed = True
            self.new_chat()

    def _on_renamed(self, chat: str, title: str) -> None:
        if chat == self.shown.id:
            self.shown.title = title
            self.title_changed.emit()
