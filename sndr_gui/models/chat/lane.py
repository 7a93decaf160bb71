"""The messages with one model: a tree, of which one branch is shown, and the answer that is coming."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QTimer, Signal

from engine_host.client import HostError
from engine_host.client.chats import record
from engine_host.protocol.engines import Engine
from engine_host.protocol.language import tr
from sndr_gui.host.session import Session
from sndr_gui.models.chat.answer import Answer
from sndr_gui.models.chat.message import Message, message_of
from sndr_gui.models.chat.options import Options
from sndr_gui.models.chat.partner import Partner

if TYPE_CHECKING:
    from sndr_gui.models.chat.conversation import Conversation

_FRAME_MS = 33
"""Thirty pictures a second."""


class Lane(QObject):
    """One column of a conversation. An edit or a new answer begins a branch; the one before it is kept.

    Signals:
        added: the place of a new message among those that are shown
        appended: the place of a message, and text that came for it
        reasoned: the place of a message, and reasoning that came for it
        message_changed: the place of a message whose state, measurements or calls are new
        cut: the messages from this place on are not shown any more
        busy_changed: an answer begins or has ended
    """

    added = Signal(int)
    appended = Signal(int, str)
    reasoned = Signal(int, str)
    message_changed = Signal(int)
    cut = Signal(int)
    busy_changed = Signal()

    def __init__(
        self,
        conversation: Conversation,
        session: Session,
        first: Callable[[], Engine | None],
        kept: record.Lane | None = None,
    ) -> None:
        super().__init__()
        # An answer goes on while another conversation is shown, and this is what it is kept in.
        self.conversation = conversation
        self._session = session
        self.partner = Partner(session, first, kept.engine if kept is not None else "")
        self.nodes: list[Message] = [message_of(turn) for turn in kept.messages] if kept else []
        self.path: list[int] = kept.path() if kept else []
        self.busy = False
        self._answer: Answer | None = None
        self._task: asyncio.Future[None] | None = None
        self._worked = 0.0
        self._flush = QTimer(self)
        self._flush.setInterval(_FRAME_MS)
        self._flush.timeout.connect(self._emit)
        self._name_engines()

    @property
    def messages(self) -> list[Message]:
        """The messages that are shown, in their order."""
        return [self.nodes[node] for node in self.path]

    def kept(self) -> record.Lane:
        """Return it as it is kept."""
        turns = tuple(message.turn() for message in self.nodes)
        return record.Lane(engine=self.partner.name, leaf=self.path[-1] if self.path else -1, messages=turns)

    # The tree.

    def siblings(self, place: int) -> tuple[int, int]:
        """Return the number of a shown message among the branches there, from 1, and of how many."""
        nodes = self._siblings(place)
        return nodes.index(self.path[place]) + 1, len(nodes)

    def show_sibling(self, place: int, step: int) -> None:
        """Show the branch before or after the one that is shown, from this place on."""
        nodes = self._siblings(place)
        at = nodes.index(self.path[place]) + step
        if self.busy or not 0 <= at < len(nodes):
            return
        self._cut(place)
        following: int | None = nodes[at]
        while following is not None:
            self.path.append(following)
            self.added.emit(len(self.path) - 1)
            children = [node for node, message in enumerate(self.nodes) if message.parent == following]
            following = children[-1] if children else None

    def _siblings(self, place: int) -> list[int]:
        mine = self.nodes[self.path[place]]
        return [
            node
            for node, message in enumerate(self.nodes)
            if (message.parent, message.role) == (mine.parent, mine.role)
        ]

    def _cut(self, place: int) -> None:
        if place < len(self.path):
            del self.path[place:]
            self.cut.emit(place)

    def _add(self, message: Message) -> None:
        message.parent = self.path[-1] if self.path else -1
        self.nodes.append(message)
        self.path.append(len(self.nodes) - 1)
        self.added.emit(len(self.path) - 1)
        if self.siblings(len(self.path) - 1)[1] > 1:
            self.message_changed.emit(len(self.path) - 1)

    def question(self, number: int) -> int | None:
        """Return the place of the n-th question that is shown, from 0."""
        places = [place for place, message in enumerate(self.messages) if message.role == "user"]
        return places[number] if number < len(places) else None

    # Asking.

    def ask(self, text: str, options: Options, place: int | None = None) -> None:
        """Send a message and stream the answer; with a place in a branch of its own from there on."""
        if self.busy:
            return
        if place is not None:
            self._cut(place)
        self._add(Message("user", text))
        self._begin(options)

    def regenerate(self, place: int, options: Options) -> None:
        """Answer the question before a place once more, in a branch of its own."""
        if self.busy or not self.partner.serving:
            return
        while 0 <= place < len(self.path) and self.messages[place].role == "assistant":
            place -= 1
        if 0 <= place < len(self.path):
            self._cut(place + 1)
            self._begin(options)

    def stop(self) -> None:
        """End the answer that is coming, in the engine too; what came is kept."""
        if self._task is not None:
            self._task.cancel()

    def body(self, options: Options) -> dict[str, Any]:
        """Return the request for the next answer."""
        messages: list[dict[str, Any]] = []
        if options.system.strip():
            messages.append({"role": "system", "content": options.system.strip()})
        messages += [
            {"role": message.role, "content": message.text}
            for message in self.messages
            if message.text or message.role == "user"
        ]
        body: dict[str, Any] = {"model": self.partner.model, "messages": messages, "stream": True}
        body["stream_options"] = {"include_usage": True}
        options.put_into(body)
        return body

    def as_curl(self, place: int, options: Options) -> str:
        """Return the request that led to an answer, as a curl command line in ASCII."""
        host = self._session.state.host
        url = (host.endpoint.url if host else None) or "http://127.0.0.1:8020/v1"
        body = self.messages[place].body or self._body_before(place, options)
        # Letters of other alphabets as JSON's escapes: what is pasted into a shell steers nothing there.
        text = json.dumps(body).replace("'", "'\\''")
        key = " -H 'Authorization: Bearer KEY'" if host and host.endpoint.key_required else ""
        # -N: the answer is streamed, and shown as it comes.
        return f"curl {url}/chat/completions -N{key} -H 'Content-Type: application/json' -d '{text}'"

    def _body_before(self, place: int, options: Options) -> dict[str, Any]:
        """Return the request for an answer that was kept, whose own request was not."""
        path, self.path = self.path, self.path[:place]
        body = self.body(options) | {"model": self.nodes[path[place]].engine or self.partner.name}
        self.path = path
        return body

    def _begin(self, options: Options) -> None:
        body = self.body(options)
        self.partner.hold()
        message = Message("assistant", state="streaming", status=tr("Sending…"), body=body)
        message.engine = self.partner.model
        self._answer = Answer(message)
        self._add(message)
        self._name_engines()
        self.busy = True
        self.busy_changed.emit()
        self._task = self._session.tasks.start(self._stream(self._answer, body), "chat")
        if self._task.cancelled():
            self._end()
        else:
            self._task.add_done_callback(self._on_done)

    def _name_engines(self) -> None:
        """Have each answer say who gave it, once the conversation has been with several engines."""
        answers = [message for message in self.nodes if message.role == "assistant"]
        if len({message.engine for message in answers}) > 1:
            for message in answers:
                message.names_engine = True
            for place in range(len(self.path)):
                self.message_changed.emit(place)

    async def _stream(self, answer: Answer, body: dict[str, Any]) -> None:
        self._worked = time.thread_time()
        self._flush.start()
        try:
            await answer.follow(self._session.client.chat(body))
        except HostError as error:
            # There is no client: the connection was lost between the click and now.
            answer.message.state, answer.message.problem = "failed", error.problem
        finally:
            self._end()

    def _on_done(self, task: asyncio.Future[None]) -> None:
        # One that was cancelled before its first step has run no line of its own.
        if task is self._task:
            self._end()

    def _end(self) -> None:
        self._flush.stop()
        if self._answer is not None and self._answer.message.state == "streaming":
            self._answer.message.state, self._answer.message.status = "stopped", ""
        self._emit()
        self._answer, self._task = None, None
        self.busy = False
        self.message_changed.emit(len(self.path) - 1)
        self.busy_changed.emit()

    def _emit(self) -> None:
        if self._answer is None:
            return
        text, reasoning, changed = self._answer.take()
        if not (text or reasoning or changed):
            return
        place = len(self.path) - 1
        if reasoning:
            self.reasoned.emit(place, reasoning)
        if text:
            self.appended.emit(place, text)
        if changed:
            self.message_changed.emit(place)
        # What this thread has worked since the last picture, painting it included, may take a quarter of the
        # time: a slow reader would slow the engine down, and the window has more to do.
        worked = time.thread_time()
        spent, self._worked = 1000 * (worked - self._worked), worked
        self._flush.setInterval(int(min(1000, max(_FRAME_MS, 4 * spent))))
