"""One answer as it streams in: its text, its reasoning, its tool calls and its figures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing

from engine_host.client import DONE, HostError, SseMessage, chat_chunk
from engine_host.client.failures import of_openai
from engine_host.protocol.errors import Problem
from engine_host.protocol.language import tr
from sndr_gui.kit import formats
from sndr_gui.models.chat.message import Message, ToolCall


class Answer:
    """Fills a message with what streams in; what is new is taken out by whoever draws it, when it draws."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self._began = time.monotonic()
        self._thinking: float | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._changed = False

    def take(self) -> tuple[str, str, bool]:
        """Return the text and the reasoning that came since the last time, and whether anything else did."""
        taken = "".join(self._text), "".join(self._reasoning), self._changed
        self._text, self._reasoning, self._changed = [], [], False
        return taken

    async def follow(self, stream: AsyncIterator[SseMessage]) -> None:
        """Read the stream to its end. Closing it, also by a cancellation, ends the work in the engine."""
        message = self.message
        self._began = time.monotonic()
        try:
            async with aclosing(stream) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    self._piece(piece)
            message.state = "failed" if message.problem else "done"
        except asyncio.CancelledError:
            # The person pressed Stop: that ends the answer, not the program's task group.
            message.state = "stopped"
        except HostError as error:
            self._fail(error.problem)
        finally:
            if message.state == "streaming":
                message.state = "failed"
            message.status = ""
            message.seconds = time.monotonic() - self._began
            self._end_thought()
            message.measure()

    def _fail(self, problem: Problem) -> None:
        self.message.state, self.message.problem = "failed", problem

    def _piece(self, piece: SseMessage) -> None:
        message = self.message
        if piece.comment:
            if piece.comment.startswith("waiting"):
                self._status(f"W{piece.comment[1:]}")
            return
        if not piece.data or piece.data == DONE:
            return
        if (chunk := chat_chunk.parse(piece.data)) is None:
            return
        if chunk.get("error"):
            message.problem = of_openai(chunk["error"], 0).problem
            return
        counted = chat_chunk.counts(chunk)
        for name, value in (
            ("tokens", counted.generated_tokens),
            ("prompt_tokens", counted.prompt_tokens),
            ("rate", counted.rate),
            ("draft_tokens", counted.draft_tokens),
            ("draft_accepted", counted.draft_accepted),
        ):
            if value is not None:
                setattr(message, name, value)
        for delta in chat_chunk.deltas(chunk):
            message.finish = delta.finish or message.finish
            self._delta(delta)
        if message.length > chat_chunk.MOST_TEXT:
            raise chat_chunk.too_long()

    def _delta(self, delta: chat_chunk.Delta) -> None:
        message = self.message
        if delta.text or delta.reasoning or delta.calls:
            message.take_piece(time.monotonic() - self._began)
        if delta.reasoning:
            self._reason(delta.reasoning)
        if delta.text or delta.calls:
            self._end_thought()
        if delta.text:
            self._status(tr("Answering…"))
            message.text += delta.text
            self._text.append(delta.text)
        for part in delta.parts():
            if part.index not in message.calls and len(message.calls) >= chat_chunk.MOST_CALLS:
                continue
            self._status(tr("Calling a tool…"))
            kept = message.calls.setdefault(part.index, ToolCall())
            kept.name += part.name
            kept.arguments += part.arguments
            message.arguments += len(part.name) + len(part.arguments)
            self._changed = True

    def _reason(self, text: str) -> None:
        message = self.message
        if self._thinking is None and message.thought is None:
            self._thinking = time.monotonic()
        # Counted as they come: to split all of it anew for each piece would take ever longer.
        goes_on = not text[:1].isspace() and not message.reasoning[-1:].isspace()
        message.words += len(text.split()) - (goes_on and bool(message.reasoning))
        message.reasoning += text
        self._reasoning.append(text)
        self._status(tr("Thinking… {words}", words=formats.plural(message.words, "word")))

    def _end_thought(self) -> None:
        if self._thinking is not None:
            self.message.thought = time.monotonic() - self._thinking
            self._thinking = None
            self._changed = True

    def _status(self, text: str) -> None:
        if text != self.message.status:
            self.message.status = text
            self._changed = True
