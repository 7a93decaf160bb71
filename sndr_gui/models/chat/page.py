"""The view-model of Chat: one conversation with one engine, streamed at 30 updates a second."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from engine_host.client import DONE, HostError, SseMessage, chat_chunk, decode_rate
from engine_host.client.failures import of_openai
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Problem
from sndr_gui.host.choice import LIVE_STATES
from sndr_gui.host.session import Session
from sndr_gui.kit import formats
from sndr_gui.models.engine.choice import command_of, other_than
from sndr_gui.models.engine.start import SERVING
from sndr_gui.models.window.actions import Actions

EXAMPLES = (
    # The model that comes with the program answers these well.
    "What is a list comprehension?",
    "How do I read a file in Python?",
    "Tell me a long story about Python.",
)
"""Seconds below which a text came in one go, and its rate would be of the way here."""


@dataclass
class ToolCall:
    """One call of a tool, as it comes in."""

    name: str = ""
    arguments: str = ""


@dataclass
class Message:
    """One message of the conversation."""

    role: str
    text: str = ""
    reasoning: str = ""
    words: int = 0
    """The words of the reasoning so far."""
    calls: dict[int, ToolCall] = field(default_factory=dict)
    arguments: int = 0
    """Letters of the arguments of all calls."""
    state: str = "done"
    status: str = ""
    finish: str = ""
    ttft: float | None = None
    last: float | None = None
    seconds: float | None = None
    engine: str = ""
    """Of an answer: the public name of the engine that gives it."""
    names_engine: bool = False
    """True where the conversation has answers of several engines."""
    prompt_tokens: int | None = None
    tokens: int | None = None
    rate: float | None = None
    problem: Problem | None = None
    body: dict[str, Any] = field(default_factory=dict)
    """Of an answer: the request that led to it."""

    @property
    def length(self) -> int:
        """The letters of all that came."""
        return len(self.text) + len(self.reasoning) + self.arguments

    def metrics(self) -> str:
        """Return the measurements of this answer in one line."""
        if self.role != "assistant" or self.state == "streaming":
            return self.status
        parts = [self.engine] if self.names_engine else []
        if self.ttft is not None:
            parts.append(f"first token after {formats.duration(self.ttft)}")
        if self.rate is not None:
            parts.append(formats.rate(self.rate))
        if self.tokens is not None:
            parts.append(formats.plural(self.tokens, "token"))
        if self.prompt_tokens is not None:
            parts.append(f"{formats.count(self.prompt_tokens)} prompt tokens")
        if self.state == "stopped":
            parts.append("stopped")
        elif self.finish == "length":
            parts.append("token limit reached")
        return "  ·  ".join(parts)

    def take_piece(self, after: float) -> None:
        """Note that a piece of the answer came, so many seconds after the question."""
        self.ttft = after if self.ttft is None else self.ttft
        self.last = after

    def measure(self) -> None:
        """Compute the rate where the engine reported none: vLLM does not, llama.cpp does."""
        if self.rate is None and self.tokens and self.ttft is not None and self.last is not None:
            self.rate = decode_rate(self.tokens, self.last - self.ttft)


@dataclass(frozen=True)
class Options:
    """Options of an answer; None leaves one to the engine."""

    system: str = ""
    temperature: float | None = None
    max_tokens: int | None = None


class ChatModel(QObject):
    """The model of Chat.

    Signals:
        added: the place of a new message
        appended: the place of a message, and text that came for it
        message_changed: the place of a message whose state, measurements or calls are new
        cleared: the conversation starts over
        busy_changed: whether an answer is coming
        available_changed: whether there is an engine to talk to
    """

    added = Signal(int)
    appended = Signal(int, str)
    message_changed = Signal(int)
    cleared = Signal()
    busy_changed = Signal(bool)
    available_changed = Signal()

    def __init__(self, session: Session, actions: Actions) -> None:
        super().__init__()
        self.session, self.actions = session, actions
        self.messages: list[Message] = []
        self.options = Options()
        self.options_error = ""
        self.busy = False
        self._with: Engine | None = None
        self._buffer: list[str] = []
        self._task: asyncio.Future[None] | None = None
        self._flush = QTimer(self)
        self._flush.setInterval(33)
        self._flush.timeout.connect(self._emit)
        session.state.engines_changed.connect(self.available_changed)
        session.connection.changed.connect(self.available_changed)
        session.state.models_changed.connect(self.available_changed)
        actions.changed.connect(self.available_changed)

    # The engine of the conversation.

    @property
    def engine(self) -> Engine | None:
        """The engine of this conversation; before its first message the chosen one. It may have ended."""
        state, partner = self.session.state, self._with
        if partner is None:
            return state.engine
        held = state.engines.get(partner.id)
        if held is not None and held.state in LIVE_STATES:
            return held
        # Started again under the same name it is the same model.
        return state.live_named(partner.name) or held or partner

    @property
    def running(self) -> Engine | None:
        """The engine of this conversation, while it runs."""
        engine, state = self.engine, self.session.state
        here = engine is not None and engine.id in state.engines
        return engine if here and engine is not None and engine.state in LIVE_STATES else None

    @property
    def model(self) -> str:
        """The engine that answers, by its public name."""
        engine = self.running
        return engine.name if engine else ""

    @property
    def command(self) -> str:
        """The command that asks the same engine."""
        option = ("--model",) if len(self.session.state.live) > 1 else ()
        return f'{command_of(self.session.state, self.engine, "chat", *option)} "…"'

    @property
    def other(self) -> Engine | None:
        """The engine to go on with where the one of this conversation ended."""
        return other_than(self.session.state, self.engine) if self.running is None else None

    def choose(self, engine: Engine) -> None:
        """Go on with this engine, here and on the other pages."""
        if self._with is not None:
            self._with = engine
        self.session.state.choose(engine)
        self.available_changed.emit()

    @property
    def available(self) -> bool:
        """True while a message can be sent."""
        engine = self.running
        answers = engine is not None and engine.state in SERVING
        return self.session.connection.connected and answers and not self.options_error

    @property
    def blocked_reason(self) -> str:
        """The reason why nothing can be sent, in a sentence."""
        if not self.session.connection.connected:
            return self.session.connection.sentence
        if self.options_error:
            return self.options_error
        engine = self.running
        if engine is None:
            return self._ended
        return "" if self.available else f"{engine.name} is {engine.state.value}; wait until it is ready."

    @property
    def _ended(self) -> str:
        """Say what became of the engine, or that there is none."""
        if (failed := self.failed) is not None:
            why = f" {failed.problem.message}" if failed.problem is not None else ""
            return f"{failed.name} failed.{why}"
        if (partner := self._with) is not None:
            return f"{partner.name}, which this conversation is with, has ended."
        return "No engine runs. Start one to chat with it."

    @property
    def failed(self) -> Engine | None:
        """The engine of this conversation, or the newest, when it failed and none runs in its place."""
        engine = self.engine
        return engine if engine is not None and engine.state is EngineState.FAILED else None

    @property
    def start_label(self) -> str:
        """The label of the button that starts an engine; empty where one runs or nothing can start."""
        if not self.session.connection.connected or self.running is not None:
            return ""
        if self.actions.starting:
            return "Starting…"
        if (failed := self.failed) is not None:
            return f"Start {failed.name} again"
        if self.other is not None:
            return ""
        demo = self.actions.demo_model()
        return f"Start {demo.name}" if demo is not None else ""

    @property
    def other_label(self) -> str:
        """The label of the button that goes on with another engine; empty where there is none to offer."""
        if (other := self.other) is None:
            return ""
        return f"Continue with {other.name}" if self.messages else f"Chat with {other.name}"

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

    def set_options(self, options: Options, error: str = "") -> None:
        """Take over the options; nothing is sent while one of them is invalid."""
        self.options, self.options_error = options, error
        self.available_changed.emit()

    def send(self, text: str) -> None:
        """Send a message and stream the answer."""
        text = text.strip()
        if not text or self.busy or not self.available:
            return
        self._add(Message("user", text))
        self._answer()

    def regenerate(self) -> None:
        """Answer the last question again."""
        if self.busy or not self.available:
            return
        while self.messages and self.messages[-1].role == "assistant":
            self.messages.pop()
        if not self.messages:
            return
        kept = list(self.messages)
        self.messages = []
        self.cleared.emit()
        for message in kept:
            self._add(message)
        self._answer()

    def stop(self) -> None:
        """End the answer that is coming; what came is kept."""
        if self._task is not None:
            self._task.cancel()

    def new_chat(self) -> None:
        """Start over."""
        self.stop()
        self.messages = []
        self._with = None
        self._buffer.clear()
        self.cleared.emit()

    def body(self) -> dict[str, Any]:
        """Return the request for the next answer."""
        messages: list[dict[str, Any]] = []
        if self.options.system.strip():
            messages.append({"role": "system", "content": self.options.system.strip()})
        messages += [
            {"role": message.role, "content": message.text}
            for message in self.messages
            if message.text or message.role == "user"
        ]
        body: dict[str, Any] = {"model": self.model, "messages": messages, "stream": True}
        body["stream_options"] = {"include_usage": True}
        if self.options.temperature is not None:
            body["temperature"] = self.options.temperature
        if self.options.max_tokens is not None:
            body["max_tokens"] = self.options.max_tokens
        return body

    def as_curl(self, place: int) -> str:
        """Return the request that led to an answer, as a curl command line."""
        host = self.session.state.host
        url = (host.endpoint.url if host else None) or "http://127.0.0.1:8020/v1"
        text = json.dumps(self.messages[place].body, ensure_ascii=False).replace("'", "'\\''")
        key = " -H 'Authorization: Bearer KEY'" if host and host.endpoint.key_required else ""
        # -N: the answer is streamed, and shown as it comes.
        return f"curl {url}/chat/completions -N{key} -H 'Content-Type: application/json' -d '{text}'"

    def _add(self, message: Message) -> None:
        self.messages.append(message)
        self.added.emit(len(self.messages) - 1)

    def _answer(self) -> None:
        body = self.body()
        self._with = self.running
        answer = Message("assistant", state="streaming", status="Sending…", body=body, engine=self.model)
        self._add(answer)
        self._name_engines()
        self._set_busy(True)
        self._task = self.session.tasks.start(self._stream(self.messages[-1], body), "chat")

    def _name_engines(self) -> None:
        """Have each answer say who gave it, once the conversation has been with several engines."""
        answers = [message for message in self.messages if message.role == "assistant"]
        if len({message.engine for message in answers}) > 1:
            for message in answers:
                message.names_engine = True
                self._tell(message)

    def _set_busy(self, busy: bool) -> None:
        self.busy = busy
        self.busy_changed.emit(busy)

    async def _stream(self, message: Message, body: dict[str, Any]) -> None:
        began = time.monotonic()
        self._flush.start()
        try:
            stream: AsyncIterator[SseMessage] = self.session.client.chat(body)
            async with aclosing(stream) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    self._take(message, piece, began)
            message.state = "failed" if message.problem else "done"
        except asyncio.CancelledError:
            message.state = "stopped"
            # The person pressed Stop: that ends the answer, not the program's task group.
        except HostError as error:
            message.state, message.problem = "failed", error.problem
        finally:
            message.status = ""
            message.seconds = time.monotonic() - began
            message.measure()
            self._flush.stop()
            self._emit()
            self._tell(message)
            self._set_busy(False)

    def _take(self, message: Message, piece: SseMessage, began: float) -> None:
        if piece.comment:
            if piece.comment.startswith("waiting"):
                self._status(message, f"W{piece.comment[1:]}")
            return
        if not piece.data or piece.data == DONE:
            return
        if (chunk := chat_chunk.parse(piece.data)) is None:
            return
        if chunk.get("error"):
            message.problem = of_openai(chunk["error"], 0).problem
            return
        counted = chat_chunk.counts(chunk)
        message.tokens = message.tokens if counted.generated_tokens is None else counted.generated_tokens
        message.prompt_tokens = (
            message.prompt_tokens if counted.prompt_tokens is None else counted.prompt_tokens
        )
        message.rate = message.rate if counted.rate is None else counted.rate
        for delta in chat_chunk.deltas(chunk):
            message.finish = delta.finish or message.finish
            self._delta(message, delta, began)
        if message.length > chat_chunk.MOST_TEXT:
            raise chat_chunk.too_long()

    def _delta(self, message: Message, delta: chat_chunk.Delta, began: float) -> None:
        if delta.text or delta.reasoning or delta.calls:
            message.take_piece(time.monotonic() - began)
        if delta.text:
            self._status(message, "Answering…")
            message.text += delta.text
            self._buffer.append(delta.text)
        if delta.reasoning:
            # Counted as they come: to split all of it anew for each piece would take ever longer.
            goes_on = not delta.reasoning[:1].isspace() and not message.reasoning[-1:].isspace()
            message.words += len(delta.reasoning.split()) - (goes_on and bool(message.reasoning))
            message.reasoning += delta.reasoning
            self._status(message, f"Thinking… {formats.plural(message.words, 'word')}")
        for part in delta.parts():
            if part.index not in message.calls and len(message.calls) >= chat_chunk.MOST_CALLS:
                continue
            kept = message.calls.setdefault(part.index, ToolCall())
            kept.name += part.name
            kept.arguments += part.arguments
            message.arguments += len(part.arguments)
            self._tell(message)

    def _status(self, message: Message, text: str) -> None:
        if text != message.status:
            message.status = text
            self._tell(message)

    def _tell(self, message: Message) -> None:
        for place in range(len(self.messages) - 1, -1, -1):
            if self.messages[place] is message:
                self.message_changed.emit(place)
                return

    def _emit(self) -> None:
        if self._buffer and self.messages:
            text = "".join(self._buffer)
            self._buffer.clear()
            began = time.perf_counter()
            self.appended.emit(len(self.messages) - 1, text)
            # Drawing may take an eighth of the time at most: a slow reader would slow the engine down.
            spent = 1000 * (time.perf_counter() - began)
            self._flush.setInterval(int(min(1000, max(33, 8 * spent))))
