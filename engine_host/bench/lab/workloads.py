"""Workloads: what is asked, how often, how many at once; every question begins with a salt of its own."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from engine_host.bench.lab import arrivals
from engine_host.bench.lab.arrivals import Planned
from engine_host.protocol.bench.checks import CheckName
from engine_host.protocol.bench.lab import WorkloadName

SAMPLING = {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.0}
"""Of every request, so that runs compare; a non-zero min_p makes some reasoning models loop."""
COUNTS = (1, 2, 4, 8, 16)
"""The requests at once of a concurrency sweep, where none are named."""
ANSWER_WITH_FACT = 64
"""Tokens for an answer that holds one fact."""
_NARRATIVE = (
    "Write an essay of about 800 words on how attention works in transformer language models: queries, keys "
    "and values, several heads, positions, causal masks, and the cache of keys and values."
)
_CODE = (
    "Write a complete, well commented implementation of quicksort in Python, with type hints, a docstring, "
    "the choice of the pivot explained, an in-place variant, and tests of the corner cases."
)
_STORY = "Tell me a long story about Python."
_FACTS = (
    "the river is wide at the old mill",
    "a bakery opens before the first train",
    "the map shows seven lakes to the north",
    "every lamp in the harbour has its number",
    "the museum keeps a clock without hands",
    "rain fell on the market for three days",
    "two bridges were closed for repair",
)
_SUMMARY = "Say what these notes have in common, and what you make of each of them."
_WARM_OF_SERVING = 2
TURNS = 15
_TURNS_OF_SESSION = 5
_LONG_TAIL = "Say in one sentence what these notes are about."


@dataclass(frozen=True)
class Part:
    """One question, `warm` times unmeasured, then `measured` times, each time in `streams` requests at once.

    `variety` is the least share of different words in the first 200 of a coherent answer; None for answers
    too short to be judged. `notes` are lines of text before the question, which make a prompt long; `tokens`
    is the exact length of a prompt by the engine's own count. `planned` are the requests of a round that does
    not ask all at once; a warm round is one of them. With `fact` the text holds one that is asked for.
    `turn` is that of a conversation of an agent, whose rounds are conversations. `shared` prompts begin
    alike, so that what a cache spares is what is measured.
    """

    name: str
    question: str
    max_tokens: int
    warm: int
    measured: int
    streams: int = 1
    variety: float | None = 0.30
    notes: int = 0
    tokens: int | None = None
    planned: tuple[Planned, ...] = ()
    fact: bool = False
    turn: int = 0
    shared: bool = False

    @property
    def rounds(self) -> int:
        """All rounds, warm ones included."""
        return self.warm + self.measured

    def requests(self, turn: int) -> tuple[Planned, ...]:
        """Return the requests of a round."""
        if not self.planned:
            return (Planned(0.0, self.tokens, self.max_tokens),) * self.streams
        if turn < self.warm:
            return (replace(self.planned[turn % len(self.planned)], at=0.0),)
        return self.planned


@dataclass(frozen=True)
class Workload:
    """Parts one after another; `sweep` has the same part with more streams each time, and so a knee.

    `by_round` asks a round of every part before the next, as conversations go. `watched` has the
    memory of the engine read. `check` is what the answers have to pass, so that the figures stand.
    """

    name: WorkloadName
    parts: tuple[Part, ...]
    sweep: bool = False
    by_round: bool = False
    watched: bool = False
    sampling: dict[str, float] = field(default_factory=lambda: dict(SAMPLING))
    check: CheckName | None = None


def at_once(counts: Sequence[int]) -> tuple[Part, ...]:
    """Return the same question at so many at once, step by step."""
    return tuple(
        Part(f"{count} at once", _NARRATIVE, max_tokens=256, warm=1, measured=3, streams=count)
        for count in counts
    )


def _prefill(name: str, tokens: int, measured: int) -> Part:
    return Part(name, _LONG_TAIL, max_tokens=64, warm=1, measured=measured, variety=None, tokens=tokens)


def _served(name: str, planned: tuple[Planned, ...], *, shared: bool = False) -> Part:
    most = max(one.max_tokens for one in planned)
    return Part(
        name,
        _SUMMARY,
        max_tokens=most,
        warm=_WARM_OF_SERVING,
        measured=1,
        streams=len(planned),
        variety=None,
        planned=planned,
        shared=shared,
    )


def _turns(turns: int, conversations: int, growth: int) -> tuple[Part, ...]:
    # Fifteen of 3,500 tokens end at about 53,000, five of 5,000 at about 25,000.
    return tuple(
        Part(
            f"turn {turn}",
            "",
            max_tokens=128,
            warm=0,
            measured=conversations,
            variety=None,
            turn=turn,
            tokens=growth,
            shared=True,
        )
        for turn in range(1, turns + 1)
    )


def ladder_parts(lengths: Sequence[int]) -> tuple[Part, ...]:
    """Return a text of each length, each with a fact that is asked for."""
    return tuple(
        Part(
            f"{length:,} tokens",
            "What is the key of the archive? Say the number.",
            max_tokens=ANSWER_WITH_FACT,
            warm=0,
            measured=1,
            variety=None,
            tokens=length,
            fact=True,
        )
        for length in lengths
    )


WORKLOADS = {
    one.name: one
    for one in (
        Workload(
            WorkloadName.QUICK,
            (Part("story", _STORY, max_tokens=128, warm=1, measured=5),),
            check=CheckName.TOOL_CALL,
        ),
        Workload(
            WorkloadName.CANONICAL,
            (
                Part("narrative", _NARRATIVE, max_tokens=1000, warm=3, measured=5),
                # Names of variables come again and again in good code.
                Part("code", _CODE, max_tokens=800, warm=3, measured=5, variety=0.15),
            ),
            check=CheckName.TOOL_CALL,
        ),
        Workload(
            WorkloadName.PREFILL,
            (Part("long prompt", _LONG_TAIL, max_tokens=64, warm=1, measured=5, variety=None, notes=450),),
            check=CheckName.NEEDLE_SHORT,
        ),
        Workload(
            WorkloadName.CONCURRENCY,
            at_once(COUNTS),
            sweep=True,
            check=CheckName.TOOL_CALL,
        ),
        Workload(
            WorkloadName.PREFILL_10K, (_prefill("10,000 tokens", 10_000, 5),), check=CheckName.NEEDLE_SHORT
        ),
        Workload(
            WorkloadName.PREFILL_90K, (_prefill("90,000 tokens", 90_000, 3),), check=CheckName.NEEDLE_SHORT
        ),
        Workload(
            WorkloadName.SERVING,
            (
                Part(
                    "baseline",
                    _SUMMARY,
                    max_tokens=256,
                    warm=_WARM_OF_SERVING,
                    measured=10,
                    variety=None,
                    tokens=256,
                ),
                _served("continuous batching", arrivals.continuous()),
                _served("burst", arrivals.burst()),
                _served("mixed prompts", arrivals.mixed()),
                _served("shared prefix", arrivals.shared_head(), shared=True),
            ),
            sampling={"temperature": 0.0},
            check=CheckName.TOOL_CALL,
        ),
        Workload(
            WorkloadName.AGENTIC,
            _turns(TURNS, 3, 3_500),
            by_round=True,
            check=CheckName.TOOL_CALL,
        ),
        Workload(WorkloadName.SOAK, _turns(_TURNS_OF_SESSION, 20, 400), by_round=True, watched=True),
        Workload(
            WorkloadName.SOAK_CONTINUOUS, _turns(_TURNS_OF_SESSION, 6, 5_000), by_round=True, watched=True
        ),
        # Its parts are made for the context of the engine that is asked.
        Workload(WorkloadName.CONTEXT, ladder_parts((256,))),
    )
}
"""Every workload by its name; `sndr bench run --help` says what each is for."""


def repeated(workload: Workload, rounds: int) -> Workload:
    """Return a workload with another number of measured rounds of each part."""
    return replace(workload, parts=tuple(replace(part, measured=rounds) for part in workload.parts))


def workload_hash(workload: Workload) -> str:
    """Return what is the same for runs that ask the same; how often they ask is no part of it."""
    asked = [
        (prompt(part, "0" * 16), part.name, part.max_tokens, part.streams, *_asked_besides(part))
        for part in workload.parts
    ]
    return hashlib.sha256(repr((asked, sorted(workload.sampling.items()))).encode()).hexdigest()[:16]


def _asked_besides(part: Part) -> tuple[object, ...]:
    """Return what parts have that earlier versions had not; nothing of theirs, whose runs still compare."""
    besides = (part.tokens, part.planned, part.fact, part.turn)
    return besides if any(besides) else ()


def salt(seed: int, part: str, number: int, again: int = 0) -> str:
    """Return the beginning of a prompt that no other prompt of this or another seed has.

    `again` counts how often the run was gone on with: what was read before it was cut is asked by others.
    """
    # Hashed: numbers that follow one another begin with the same tokens.
    asked = f"{seed} {part} {number}" + (f" again {again}" if again else "")
    return hashlib.sha256(asked.encode()).hexdigest()[:16]


def prompt(part: Part, salted: str) -> str:
    """Return the question of a part as it is sent."""
    # First: a prefix cache compares from the first token on.
    lines = [f"[{salted}]"]
    shift = int(salted[:4], 16)
    lines += [f"Note {n}: {_FACTS[(n * 3 + shift) % len(_FACTS)]}." for n in range(1, part.notes + 1)]
    return "\n".join([*lines, part.question])
