"""The levels of a verification, and how one is carried out."""

import asyncio
from collections.abc import Callable

from engine_host.bench.checks import agents, needle, speech, tools
from engine_host.bench.checks.subject import Judge, Subject, judged
from engine_host.protocol.bench.checks import Check, CheckName, VerifyLevel

_Row = tuple[CheckName, str, Judge]

_SMOKE: tuple[_Row, ...] = (
    (CheckName.ANSWERS, "lists its model and answers", speech.answers_at_all),
    (CheckName.PATCHES_LIVE, "the patches of its plan are live", speech.patches_live),
    (CheckName.KNOWN_ANSWER, "knows a simple answer", speech.known_answer),
    (CheckName.TOOL_CALL, "calls tools by name, with arguments in JSON", tools.tool_call),
)
_FULL: tuple[_Row, ...] = (
    *_SMOKE,
    (CheckName.STREAMS, "streams its answer in pieces", speech.streams),
    (CheckName.TOOL_CALL_STREAMED, "calls tools in a stream, thinking on and off", tools.tool_call_streamed),
    (CheckName.THINKING, "keeps thoughts apart from the answer", speech.thinking),
    (CheckName.LONG_ANSWER, "stays coherent over 2,000 tokens", speech.long_answer),
    (CheckName.SPECULATION, "gains two tokens a step by speculation", speech.speculation),
)
_STRESS: tuple[_Row, ...] = (
    (CheckName.NEEDLE_SHORT, "finds a fact in 10,000 and 30,000 tokens", needle.needle_short),
    (CheckName.TOOL_RESULT, "answers a tool's result of 25,000 tokens", agents.tool_result),
    (CheckName.MANY_TOOLS, "calls the right one of ten tools behind 5,000 tokens", agents.many_tools),
    (CheckName.TOOL_TURNS, "calls and answers over six turns", agents.tool_turns),
    (CheckName.LONG_CODE, "writes code of 4,096 tokens", speech.long_code),
    (CheckName.LONG_THOUGHT, "thinks for 8,192 tokens", speech.long_thought),
    (CheckName.NEEDLE_LONG, "finds a fact in 60,000 and 90,000 tokens", needle.needle_long),
    (CheckName.CONTEXT_LADDER, "takes 0.92 of its context", needle.context_ladder),
)
LEVELS = {VerifyLevel.SMOKE: _SMOKE, VerifyLevel.FULL: _FULL, VerifyLevel.STRESS: _STRESS}
"""The checks of each level, in the order in which they are carried out."""


async def verified(subject: Subject, level: VerifyLevel, tell: Callable[[str], None]) -> list[Check]:
    """Carry out a level, as far as it comes before it is cancelled: then what was judged is in the error."""
    done: list[Check] = []
    try:
        for name, title, judge in LEVELS[level]:
            tell(title)
            done.append(await judged(name, title, judge, subject))
    except asyncio.CancelledError:
        raise CutShortError(done) from None
    return done


class CutShortError(Exception):
    """A verification was cancelled; `done` is what was judged before."""

    def __init__(self, done: list[Check]) -> None:
        super().__init__(f"cancelled after {len(done)} checks")
        self.done = done
