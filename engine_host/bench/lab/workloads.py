"""Workloads: what is asked, how often, how many at once; every question begins with a salt of its own."""

import hashlib
from dataclasses import dataclass, field, replace

from engine_host.protocol.bench.checks import CheckName
from engine_host.protocol.bench.lab import WorkloadName

SAMPLING = {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.0}
"""Of every request, so that runs compare; a non-zero min_p makes some reasoning models loop."""
MOST_STREAMS = 16
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
_LONG_TAIL = "Say in one sentence what these notes are about."


@dataclass(frozen=True)
class Part:
    """One question, `warm` times unmeasured, then `measured` times, each time in `streams` requests at once.

    `variety` is the least share of different words in the first 200 of a coherent answer; None for answers
    too short to be judged. `notes` are lines of text before the question, which make a prompt long.
    """

    name: str
    question: str
    max_tokens: int
    warm: int
    measured: int
    streams: int = 1
    variety: float | None = 0.30
    notes: int = 0

    @property
    def rounds(self) -> int:
        """All rounds, warm ones included."""
        return self.warm + self.measured


@dataclass(frozen=True)
class Workload:
    """Parts one after another; `sweep` has the same part with more streams each time, and so a knee.

    `check` is what the answers have to pass after them, so that the figures stand.
    """

    name: WorkloadName
    parts: tuple[Part, ...]
    sweep: bool = False
    sampling: dict[str, float] = field(default_factory=lambda: dict(SAMPLING))
    check: CheckName | None = None


def _sweep(counts: tuple[int, ...]) -> tuple[Part, ...]:
    return tuple(
        Part(f"{count} at once", _NARRATIVE, max_tokens=256, warm=1, measured=3, streams=count)
        for count in counts
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
            _sweep((1, 2, 4, 8, MOST_STREAMS)),
            sweep=True,
            check=CheckName.TOOL_CALL,
        ),
    )
}
"""Every workload by its name; `sndr bench run --help` says what each is for."""


def repeated(workload: Workload, rounds: int) -> Workload:
    """Return a workload with another number of measured rounds of each part."""
    return replace(workload, parts=tuple(replace(part, measured=rounds) for part in workload.parts))


def workload_hash(workload: Workload) -> str:
    """Return what is the same for runs that ask the same; how often they ask is no part of it."""
    asked = [(prompt(part, "0" * 16), part.name, part.max_tokens, part.streams) for part in workload.parts]
    return hashlib.sha256(repr((asked, sorted(workload.sampling.items()))).encode()).hexdigest()[:16]


def salt(seed: int, part: str, number: int) -> str:
    """Return the beginning of a prompt that no other prompt of this or another seed has."""
    # Hashed: numbers that follow one another begin with the same tokens.
    return hashlib.sha256(f"{seed} {part} {number}".encode()).hexdigest()[:16]


def prompt(part: Part, salted: str) -> str:
    """Return the question of a part as it is sent."""
    # First: a prefix cache compares from the first token on.
    lines = [f"[{salted}]"]
    shift = int(salted[:4], 16)
    lines += [f"Note {n}: {_FACTS[(n * 3 + shift) % len(_FACTS)]}." for n in range(1, part.notes + 1)]
    return "\n".join([*lines, part.question])
