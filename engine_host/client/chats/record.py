"""One conversation as it is kept: its settings, and for each model the tree of its messages."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from engine_host.client.chats.sampling import checked
from engine_host.core.visible import visible

FORMAT = "sndr-chat/1"
LONGEST_TITLE = 120
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")


def is_id(text: str) -> bool:
    """Return True for a text that can be a conversation's id, and so the name of its file."""
    return _ID.fullmatch(text) is not None


def title_of(text: str) -> str:
    """Return a text as a title: its first line that is not empty, in visible characters."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    clean = " ".join(visible(line).split())
    return clean if len(clean) <= LONGEST_TITLE else clean[: LONGEST_TITLE - 1].rstrip() + "…"


def _figure(value: Any) -> Any:
    return value if not isinstance(value, float) or (math.isfinite(value) and value >= 0) else None


def _values(value: Any) -> Any:
    return checked(value) if isinstance(value, dict) else {}


_Figure = Annotated[float | None, BeforeValidator(_figure)]
_Count = Annotated[int | None, Field(ge=0, le=1 << 48)]


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class Call(_Kept):
    """One call of a tool."""

    name: str = ""
    arguments: str = ""


class Measured(_Kept):
    """The figures of an answer; None where it was not measured. Times in seconds."""

    ttft: _Figure = None
    rate: _Figure = None
    seconds: _Figure = None
    thought_seconds: _Figure = None
    prompt_tokens: _Count = None
    tokens: _Count = None
    draft_tokens: _Count = None
    draft_accepted: _Count = None


class Turn(_Kept):
    """One message; `parent` is the place of the one before it, -1 for a first one."""

    role: Literal["user", "assistant"]
    parent: int = Field(-1, ge=-1)
    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    state: Literal["done", "stopped", "failed"] = "done"
    finish: str = ""
    engine: str = ""
    error: str = ""
    measured: Measured = Measured()


class Lane(_Kept):
    """The messages with one model, and the last one of those that are shown."""

    engine: str = ""
    leaf: int = Field(-1, ge=-1)
    messages: tuple[Turn, ...] = ()

    @model_validator(mode="after")
    def _is_a_tree(self) -> Lane:
        if self.leaf >= len(self.messages) or (self.messages and self.leaf < 0):
            raise ValueError("the last message is none of them")
        if any(message.parent >= place for place, message in enumerate(self.messages)):
            raise ValueError("a message comes before the one that it follows")
        return self

    def path(self) -> list[int]:
        """Return the places of the messages that are shown, in their order."""
        found, place = [], self.leaf
        while place >= 0:
            found.append(place)
            place = self.messages[place].parent
        return found[::-1]

    def shown(self) -> list[Turn]:
        """Return the messages that are shown."""
        return [self.messages[place] for place in self.path()]


class Conversation(_Kept):
    """A conversation with one model, or with two side by side; `host` is empty for this machine's."""

    format: Literal["sndr-chat/1"] = "sndr-chat/1"
    id: str
    title: str = Field("", max_length=LONGEST_TITLE)
    created: float = Field(0.0, ge=0, le=1e11)
    changed: float = Field(0.0, ge=0, le=1e11)
    host: str = ""
    system: str = ""
    sampling: Annotated[dict[str, int | float], BeforeValidator(_values)] = {}
    lanes: tuple[Lane, ...] = Field((), min_length=1, max_length=2)

    @model_validator(mode="after")
    def _is_named(self) -> Conversation:
        if not is_id(self.id):
            raise ValueError("it has no such id as a conversation")
        return self

    @property
    def engines(self) -> list[str]:
        """The models that answered, each once."""
        names = [turn.engine for lane in self.lanes for turn in lane.messages if turn.engine]
        return list(dict.fromkeys(names))
