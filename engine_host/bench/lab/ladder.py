"""A context ladder from its samples: how much the engine takes, and what it finds in it, judged apart."""

from collections.abc import Sequence

from engine_host.bench.lab.workloads import Part
from engine_host.protocol.bench.lab import Rung, Sample
from engine_host.protocol.language import tr

CONTROL = 300
"""Tokens of a text in which a model has to find the fact, so that not finding it in more says something."""
CLOSE = 0.02
"""The share by which the engine's count may differ from what a prompt was made to have."""
_MOST_CACHED = 0.1


def rungs_of(parts: Sequence[Part], samples: Sequence[Sample]) -> tuple[Rung, ...]:
    """Return a rung for each part of a ladder that was asked; nothing for other workloads."""
    made: list[Rung] = []
    knows = True
    for part in parts:
        own = [sample for sample in samples if sample.part == part.name]
        if not part.fact or not own or part.tokens is None:
            continue
        made.append(_rung(part.name, part.tokens, own, knows=knows))
        if len(made) == 1:
            knows = made[0].found is True
    return tuple(made)


def ended_ladder(part: Part, rungs: Sequence[Rung]) -> bool:
    """Return True where the rung of a part was not taken: a longer one would not be either."""
    return any(rung.part == part.name and not rung.taken for rung in rungs)


def _rung(name: str, aimed: int, own: Sequence[Sample], *, knows: bool) -> Rung:
    tokens = next((sample.prompt_tokens for sample in own if sample.prompt_tokens is not None), None)
    why = next((sample.error for sample in own if sample.error), "")
    if not why and tokens is not None and abs(tokens - aimed) > max(CLOSE * aimed, 8):
        why = tr("it read {tokens:,} tokens of a prompt of {aimed:,}", tokens=tokens, aimed=aimed)
    taken = not why
    found: bool | None = all(sample.found for sample in own) if taken else None
    if taken and not knows:
        found, why = None, tr("the fact is not found in a short text either")
    elif taken and any((one.cached_tokens or 0) > _MOST_CACHED * aimed for one in own):
        found, why = None, tr("its text came out of the prefix cache")
    return Rung(part=name, aimed=aimed, tokens=tokens, taken=taken, found=found, why=why)
