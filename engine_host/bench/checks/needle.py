"""A fact in a long text: whether the engine takes the text, and whether it finds the fact, judged apart.

The text is made to an exact length by the engine's own count of two short ones. A fact that is not found in
some hundred tokens either says nothing of long ones, so it is asked for there first.
"""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from engine_host.bench.checks.subject import Subject, Verdict, failed, passed, skipped
from engine_host.bench.lab import gates
from engine_host.bench.lab.load import Answered
from engine_host.bench.lab.workloads import ANSWER_WITH_FACT, salt
from engine_host.protocol.base import JsonValue
from engine_host.protocol.language import tr

MOST_OF_CONTEXT = 0.92
"""The share of a context that the longest prompt takes; an answer needs the rest."""
SHORT = (10_000, 30_000)
LONG = (60_000, 90_000)
_LADDER_FROM = 95_000
_LADDER_STEP = 30_000
_SHARES = (0.25, 0.5, 0.75)
_CONTROL = 300
_ANSWER = 192
_CLOSE = 0.05
"""The share by which the engine's count of a prompt may differ from what was aimed at."""
_MOST_CACHED = 0.1
_DEPTHS = (0.5, 0.1, 0.9, 0.3, 0.7)
_PLACES = ("mill", "harbour", "station", "library", "bakery", "tower", "bridge", "garden", "school", "market")
_THINGS = (
    "a lamp",
    "a bell",
    "two boats",
    "an old clock",
    "seven chairs",
    "a map",
    "a red door",
    "some rain",
)


@dataclass(frozen=True)
class Rung:
    """One length: boundary is whether the engine took all of it, recall whether the fact was found.

    `recalled` is None where it says nothing; `fault` is that of an answer without sense. Times in seconds.
    """

    aimed: int
    tokens: int | None
    depth: float
    boundary: bool
    recalled: bool | None
    ttft: float | None
    why: str = ""
    fault: str = ""


class Haystack:
    """Texts of a wanted number of tokens, by the engine's count."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._number = 0
        self._bare = 0.0
        self._of_line = 0.0

    async def measure(self) -> str:
        """Learn what a line takes; why it cannot be told, empty where it can."""
        counts = []
        for lines in (8, 40):
            answer = await self._subject.ask(self._text(lines, 0.5)[0], max_tokens=1, thinking=False)
            if answer.error:
                return answer.error
            if answer.prompt_tokens is None:
                return "the server does not report the tokens of the prompt"
            counts.append(answer.prompt_tokens)
        self._of_line = (counts[1] - counts[0]) / 32
        self._bare = counts[0] - 8 * self._of_line
        return "" if self._of_line > 1 else "its count of tokens does not grow with the text"

    async def ask(self, tokens: int, depth: float, most: int = _ANSWER) -> tuple[Answered, str]:
        """Ask for the fact in a text of so many tokens; the answer, of `most` tokens, and the fact."""
        lines = max(4, int((tokens - self._bare) / self._of_line))
        text, fact = self._text(lines, depth)
        return await self._subject.ask(text, max_tokens=most, thinking=False), fact

    def _text(self, lines: int, depth: float) -> tuple[str, str]:
        """Return a text that no cache has seen, with its fact."""
        self._number += 1
        salted = salt(self._subject.seed, "needle", self._number)
        draw = random.Random(salted)
        fact = str(draw.randrange(10_000, 100_000))
        notes = [
            f"At the {draw.choice(_PLACES)} was {draw.choice(_THINGS)} on day {draw.randrange(100, 1000)}."
            for _ in range(lines)
        ]
        notes.insert(round(depth * lines), f"The key of the archive is {fact}.")
        # First: a prefix cache compares from the first token on.
        return "\n".join([f"[{salted}]", *notes, "What is the key of the archive? Say the number."]), fact


async def rungs(subject: Subject, lengths: Sequence[int], most: int = _ANSWER) -> Verdict:
    """Ask at every length; the first one that the engine does not take ends it."""
    haystack = Haystack(subject)
    if why := await haystack.measure():
        return skipped(f"no text of a known length can be made: {why}")
    answer, fact = await haystack.ask(_CONTROL, 0.5, most)
    if fault := answer.error or gates.fault(answer.text, least_variety=None):
        return failed(f"already at {_CONTROL} tokens: {fault}")
    knows = fact in answer.text
    climbed: list[Rung] = []
    for place, length in enumerate(lengths):
        depth = _DEPTHS[place % len(_DEPTHS)]
        answer, fact = await haystack.ask(length, depth, most)
        rung = _rung(answer, fact, length, depth, knows)
        climbed.append(rung)
        if not rung.boundary:
            break
    return _verdict(climbed, knows)


def _rung(answer: Answered, fact: str, length: int, depth: float, knows: bool) -> Rung:
    why = answer.error
    fault = "" if why else gates.fault(answer.text, least_variety=None)
    tokens = answer.prompt_tokens
    if not why and tokens is not None and abs(tokens - length) > _CLOSE * length:
        why = tr("it read {tokens:,} tokens of a prompt of about {length:,}", tokens=tokens, length=length)
    told = not why and (answer.cached_tokens or 0) <= _MOST_CACHED * (tokens or length)
    return Rung(
        aimed=length,
        tokens=tokens,
        depth=depth,
        boundary=not why,
        recalled=fact in answer.text if knows and told else None,
        ttft=answer.arrivals[0] if answer.arrivals else None,
        why=why if why or told else "its text came out of the prefix cache",
        fault=fault,
    )


def _verdict(climbed: Sequence[Rung], knows: bool) -> Verdict:
    told: list[JsonValue] = [asdict(rung) for rung in climbed]
    taken = max((rung.tokens or rung.aimed for rung in climbed if rung.boundary), default=0)
    evidence: dict[str, JsonValue] = {"rungs": told, "taken": taken}
    fallen = next((rung for rung in climbed if not rung.boundary), None)
    if fallen is not None:
        return failed(f"boundary: at {fallen.aimed:,} tokens: {fallen.why}", **evidence)
    mad = next((rung for rung in climbed if rung.fault), None)
    if mad is not None:
        return failed(f"coherence: at {mad.tokens or mad.aimed:,} tokens {mad.fault}", **evidence)
    lost = [f"{rung.tokens or rung.aimed:,}" for rung in climbed if rung.recalled is False]
    if lost:
        return failed(f"recall: the fact is not found at {', '.join(lost)} tokens", **evidence)
    if not knows:
        evidence["recall"] = f"not judged: the fact is not found in {_CONTROL} tokens either"
    return passed(**evidence)


def _fitting(lengths: Sequence[int], context: int | None) -> list[int]:
    return [one for one in lengths if context is None or one <= MOST_OF_CONTEXT * context]


def ladder(context: int) -> tuple[int, ...]:
    """Return the lengths that lead up to 0.92 of a context."""
    last = int(MOST_OF_CONTEXT * context)
    if last <= _LADDER_FROM:
        return (*(int(share * context) for share in _SHARES), last)
    return (*range(_LADDER_FROM, last, _LADDER_STEP), last)


async def needle_short(subject: Subject) -> Verdict:
    """Judge texts of 10,000 and 30,000 tokens."""
    return await _within(subject, SHORT)


async def needle_long(subject: Subject) -> Verdict:
    """Judge texts of 60,000 and 90,000 tokens."""
    return await _within(subject, LONG)


async def _within(subject: Subject, lengths: Sequence[int]) -> Verdict:
    fitting = _fitting(lengths, subject.context)
    if not fitting:
        return skipped(f"the context is {subject.context:,} tokens, and the shortest text {lengths[0]:,}")
    return await rungs(subject, fitting)


async def context_ladder(subject: Subject) -> Verdict:
    """Judge lengths up to 0.92 of the context, the boundary and the fact apart."""
    if subject.context is None:
        return skipped("nobody says how long its context is")
    return await rungs(subject, ladder(subject.context))


async def needle_gate(subject: Subject, tokens: int) -> Verdict:
    """Judge a text of the length of a prompt whose speed is published, with an answer as long as there.

    A longer one would need more context than the workload had.
    """
    return await rungs(subject, (tokens,), ANSWER_WITH_FACT)
