"""One message of a conversation, with its tool calls and what was measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine_host.client import decode_rate
from engine_host.client.chats.record import Call, Measured, Turn
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.language import tr
from sndr_gui.kit import formats


@dataclass
class ToolCall:
    """One call of a tool, as it comes in."""

    name: str = ""
    arguments: str = ""


@dataclass
class Message:
    """One message of the conversation; times in seconds since the question, None where not measured."""

    role: str
    text: str = ""
    parent: int = -1
    """The message before it, by its place among all of its lane; -1 for a first one."""
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
    thought: float | None = None
    """The time from the first piece of the reasoning to the first of what follows it."""
    engine: str = ""
    """Of an answer: the public name of the engine that gives it."""
    names_engine: bool = False
    """True where the conversation has answers of several engines."""
    prompt_tokens: int | None = None
    tokens: int | None = None
    rate: float | None = None
    draft_tokens: int | None = None
    draft_accepted: int | None = None
    problem: Problem | None = None
    body: dict[str, Any] = field(default_factory=dict)
    """Of an answer: the request that led to it; empty for one that was kept."""

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
            parts.append(tr("first token after {duration} (client)", duration=formats.duration(self.ttft)))
        if self.rate is not None:
            parts.append(formats.rate(self.rate))
        if self.tokens is not None:
            parts.append(formats.plural(self.tokens, "token"))
        if self.prompt_tokens is not None:
            parts.append(tr("{count} prompt tokens", count=formats.count(self.prompt_tokens)))
        if self.draft_tokens and self.draft_accepted is not None:
            parts.append(
                tr(
                    "{percent} of drafts accepted",
                    percent=formats.percent(self.draft_accepted, self.draft_tokens),
                )
            )
        if self.state == "stopped":
            parts.append(tr("stopped"))
        elif self.finish == "length":
            parts.append(tr("token limit reached"))
        return "  ·  ".join(parts)

    def reasoning_label(self) -> str:
        """Return the line under which the reasoning is folded."""
        if self.thought is not None:
            return tr("Thought for {duration}", duration=formats.duration(self.thought))
        return tr("Thinking…") if self.state == "streaming" and not self.text else tr("Reasoning")

    def take_piece(self, after: float) -> None:
        """Note that a piece of the answer came, so many seconds after the question."""
        self.ttft = after if self.ttft is None else self.ttft
        self.last = after

    def measure(self) -> None:
        """Compute the rate where the engine reported none: vLLM does not, llama.cpp does."""
        if self.rate is None and self.tokens and self.ttft is not None and self.last is not None:
            self.rate = decode_rate(self.tokens, self.last - self.ttft)

    def turn(self) -> Turn:
        """Return it as it is kept."""
        state = self.state if self.state in ("done", "stopped", "failed") else "stopped"
        return Turn(
            role="user" if self.role == "user" else "assistant",
            parent=self.parent,
            text=self.text,
            reasoning=self.reasoning,
            calls=tuple(Call(name=call.name, arguments=call.arguments) for call in self.calls.values()),
            state=state,
            finish=self.finish,
            engine=self.engine,
            error=self.problem.message if self.problem is not None else "",
            measured=Measured(
                ttft=self.ttft,
                rate=self.rate,
                seconds=self.seconds,
                thought_seconds=self.thought,
                prompt_tokens=self.prompt_tokens,
                tokens=self.tokens,
                draft_tokens=self.draft_tokens,
                draft_accepted=self.draft_accepted,
            ),
        )


def message_of(turn: Turn) -> Message:
    """Return a kept message."""
    measured = turn.measured
    return Message(
        turn.role,
        turn.text,
        turn.parent,
        turn.reasoning,
        len(turn.reasoning.split()),
        {place: ToolCall(call.name, call.arguments) for place, call in enumerate(turn.calls)},
        state=turn.state,
        finish=turn.finish,
        ttft=measured.ttft,
        seconds=measured.seconds,
        thought=measured.thought_seconds,
        engine=turn.engine,
        prompt_tokens=measured.prompt_tokens,
        tokens=measured.tokens,
        rate=measured.rate,
        draft_tokens=measured.draft_tokens,
        draft_accepted=measured.draft_accepted,
        problem=Problem(reason=Reason.INTERNAL, message=turn.error) if turn.error else None,
    )
