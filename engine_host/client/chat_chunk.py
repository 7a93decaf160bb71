"""One chunk of a streamed OpenAI answer, of which nothing is believed but what has the right form."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.outside import json_text
from engine_host.protocol.errors import Fix, Reason

MOST_TEXT = 8 << 20
"""Letters of one answer; no model writes so many, and each is kept."""
MOST_CALLS = 64
"""Tool calls of one answer."""
_LARGEST = 1 << 48


@dataclass(frozen=True, slots=True)
class CallPart:
    """A piece of a tool call."""

    index: int
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Delta:
    """The new pieces of an answer: text, reasoning and the parts of tool calls, as they came."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Mapping[str, Any], ...] = ()
    finish: str | None = None

    def parts(self) -> Iterator[CallPart]:
        """Yield the parts of the tool calls."""
        for call in self.calls:
            function = call.get("function")
            named = function if isinstance(function, dict) else {}
            yield CallPart(
                whole(call.get("index")) or 0, _text(named.get("name")), _text(named.get("arguments"))
            )


@dataclass(frozen=True, slots=True)
class Counts:
    """Tokens and the rate of a chunk; None for what it does not tell. `timed`: by the engine's clock."""

    prompt_tokens: int | None = None
    generated_tokens: int | None = None
    rate: float | None = None
    timed: bool = False
    draft_tokens: int | None = None
    draft_accepted: int | None = None


def parse(data: str) -> dict[str, Any] | None:
    """Return the chunk in the data of a message; None for what is none."""
    try:
        return json_text.parse_object(data)
    except ValueError:
        return None


def too_long() -> HostError:
    """The error for an answer of more than `MOST_TEXT` letters."""
    return HostError(
        Reason.INTERNAL,
        "The answer is longer than any model writes; it was cut off.",
        fix=Fix(text="See what the engine says.", command="sndr logs"),
    )


def deltas(chunk: Mapping[str, Any]) -> Iterator[Delta]:
    """Yield what each choice of a chunk adds."""
    choices = chunk.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict):
            continue
        found = choice.get("delta")
        delta = found if isinstance(found, dict) else {}
        calls = delta.get("tool_calls")
        yield Delta(
            _text(delta.get("content")) or _text(choice.get("text")),
            _text(delta.get("reasoning_content")),
            tuple(call for call in calls if isinstance(call, dict)) if isinstance(calls, list) else (),
            _text(choice.get("finish_reason")) or None,
        )


def counts(chunk: Mapping[str, Any]) -> Counts:
    """Return the figures of a chunk; those of `usage` win over llama.cpp's `timings`."""
    timings, usage = chunk.get("timings"), chunk.get("usage")
    timed = isinstance(timings, dict) and bool(timings)
    named: Mapping[str, Any] = timings if isinstance(timings, dict) else {}
    used: Mapping[str, Any] = usage if isinstance(usage, dict) else {}
    prompt, generated = whole(used.get("prompt_tokens")), whole(used.get("completion_tokens"))
    return Counts(
        whole(named.get("prompt_n")) if prompt is None else prompt,
        whole(named.get("predicted_n")) if generated is None else generated,
        _rate(named.get("predicted_per_second")),
        timed,
        whole(named.get("draft_n")),
        whole(named.get("draft_n_accepted")),
    )


def whole(value: object) -> int | None:
    """A count that can be one; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LARGEST:
        return None
    return value


def _rate(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _LARGEST else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
