"""One start asked for everything, and compared with the reference."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine_host.bench.quality.figures import Position, agreed, divergence, percentile, perplexity
from engine_host.bench.quality.passages import Needle, Passages
from engine_host.bench.quality.subjects import Subject
from engine_host.protocol.bench.quality import KvQuality, NeedleFound
from engine_host.protocol.language import formed


@dataclass(frozen=True)
class Observed:
    """The words of one start; `seconds` are without its start."""

    positions: list[Position]
    needles: list[list[Position]]
    answers: list[list[int]]
    seconds: float


async def observe(
    subject: Subject, asked: Passages, answer_tokens: int, tell: Callable[[str, float], None]
) -> Observed:
    """Ask for predictions, needles and answers, one after the other. Raises HostError(engine_not_ready)."""
    began = time.monotonic()
    parts = len(asked.windows) + len(asked.needles) + len(asked.beginnings)
    done = 0

    def next_is(what: str) -> None:
        nonlocal done
        tell(what, done / max(1, parts))
        done += 1

    positions: list[Position] = []
    for number, window in enumerate(asked.windows, 1):
        next_is(f"window {number} of {len(asked.windows)}")
        positions += await subject.predictions(window, asked.first)
    needles = []
    for needle in asked.needles:
        next_is(f"needle at {formed(needle.depth, '.0%')}")
        needles.append(await subject.predictions((*needle.prompt, *needle.answer), len(needle.prompt)))
    answers = []
    for number, beginning in enumerate(asked.beginnings, 1):
        next_is(f"answer {number} of {len(asked.beginnings)}")
        answers.append(await subject.answer(beginning, answer_tokens))
    return Observed(positions, needles, answers, time.monotonic() - began)


def quality(
    kv: str, seen: Observed, reference: Observed | None, needles: Sequence[Needle], vocabulary: int
) -> KvQuality:
    """The figures of one type; the reference has nothing to be compared with."""
    unlisted = sum(not one.is_listed for one in seen.positions) / len(seen.positions)
    row = KvQuality(
        kv=kv,
        perplexity=perplexity(seen.positions, vocabulary),
        unlisted=unlisted,
        needles=tuple(
            NeedleFound(
                depth=needle.depth,
                found=all(one.best == one.token for one in said),
                logprob=sum(one.logprob(vocabulary) for one in said),
            )
            for needle, said in zip(needles, seen.needles, strict=True)
        ),
        seconds=round(seen.seconds, 1),
    )
    if reference is None:
        return row
    pairs = list(zip(reference.positions, seen.positions, strict=True))
    apart = [divergence(first, second) for first, second in pairs]
    return row.model_copy(
        update={
            "divergence": sum(apart) / len(apart),
            "divergence_99": percentile(apart, 0.99),
            "same_best": sum(first.best == second.best for first, second in pairs) / len(pairs),
            "agreed": tuple(
                agreed(first, second) for first, second in zip(reference.answers, seen.answers, strict=True)
            ),
        }
    )
