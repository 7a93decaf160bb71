"""The settings of a conversation: its system prompt, and the values that its answers are asked for with."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine_host.client.chats.sampling import words_of


@dataclass(frozen=True)
class Options:
    """Options of an answer; what is left out is the engine's own default."""

    system: str = ""
    sampling: Mapping[str, float] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of those that differ from the engine's own."""
        return len(self.sampling) + bool(self.system.strip())

    def put_into(self, body: dict[str, Any]) -> None:
        """Put the values into a request."""
        body.update(self.sampling)

    def words(self) -> str:
        """Return the options of `sndr chat` that ask for the same, each with a blank before it."""
        words = words_of(self.sampling)
        if system := self.system.strip():
            words = ["--system", system, *words]
        return "".join(f" {shlex.quote(word)}" for word in words)
