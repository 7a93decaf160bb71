"""Checks of what an engine answers: their outcome with its reason, and the levels of a verification."""

import shlex
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from engine_host.protocol.base import Command, Seconds, Wire
from engine_host.protocol.language.spoken import Sentence, Spoken


class CheckName(StrEnum):
    """The checks that there are."""

    ANSWERS = "answers"
    PATCHES_LIVE = "patches_live"
    KNOWN_ANSWER = "known_answer"
    TOOL_CALL = "tool_call"
    STREAMS = "streams"
    TOOL_CALL_STREAMED = "tool_call_streamed"
    THINKING = "thinking"
    LONG_ANSWER = "long_answer"
    SPECULATION = "speculation"
    NEEDLE_SHORT = "needle_short"
    TOOL_RESULT = "tool_result"
    MANY_TOOLS = "many_tools"
    TOOL_TURNS = "tool_turns"
    LONG_CODE = "long_code"
    LONG_THOUGHT = "long_thought"
    NEEDLE_LONG = "needle_long"
    CONTEXT_LADDER = "context_ladder"
    GREEDY_PARITY = "greedy_parity"


class Outcome(StrEnum):
    """The outcome of a check; one that was skipped could not be judged here, and `why` says the reason."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


VerifyAfterStart = Literal["off", "smoke", "full"]
"""The setting of what is checked of every engine that was started."""


class Check(Spoken):
    """One check: its outcome, the reason of anything but a pass, and what was seen."""

    name: CheckName
    title: Sentence
    outcome: Outcome
    why: Sentence = ""
    seconds: float = 0.0
    evidence: dict[str, Any] = Field(default_factory=dict)


class VerifyLevel(StrEnum):
    """The levels of a verification; `full` holds `smoke`, `stress` asks for long contexts and answers."""

    SMOKE = "smoke"
    FULL = "full"
    STRESS = "stress"


class VerifyEngine(Command):
    """A verification of an engine by its name or id, the only one where none is named."""

    engine: str | None = None
    level: VerifyLevel = VerifyLevel.SMOKE
    seed: int | None = Field(None, ge=0, lt=1 << 53)

    @property
    def command(self) -> str:
        """The command line that does the same."""
        named = [] if self.engine is None else [self.engine]
        seed = [] if self.seed is None else ["--seed", str(self.seed)]
        return shlex.join(["sndr", "bench", "verify", *named, "--level", self.level.value, *seed])


class VerifyReport(Wire):
    """A verification; `complete` is False for one that was cut short."""

    engine: str
    name: str
    model_path: str = ""
    level: VerifyLevel
    seed: int
    started_at: Seconds
    seconds: float = 0.0
    complete: bool = False
    of: int = Field(description="checks of its level")
    checks: tuple[Check, ...] = ()
    command: str = ""

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.outcome is Outcome.FAILED)

    @property
    def summary(self) -> str:
        """One line: 3 of 4 passed, 1 skipped."""
        counts = {kind: sum(one.outcome is kind for one in self.checks) for kind in Outcome}
        parts = [f"{counts[Outcome.PASSED]} of {self.of} passed"]
        parts += [
            f"{counts[kind]} {kind.value}" for kind in (Outcome.FAILED, Outcome.SKIPPED) if counts[kind]
        ]
        return ", ".join(parts if self.complete else [*parts, "cut short"])
