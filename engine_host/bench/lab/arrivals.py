"""The five serving workloads of the reference systems: who asks when, how much, and for how much.

The draws are the same in every run, so that runs compare; only the salts of the prompts differ.
"""

import random
from dataclasses import dataclass
from itertools import accumulate

_SEED = 42


@dataclass(frozen=True)
class Planned:
    """One request: seconds after the round began, tokens of its prompt, and the most of its answer.

    Of `head` tokens the prompt begins as the others of its round do.
    """

    at: float
    tokens: int | None
    max_tokens: int
    head: int = 0


def continuous() -> tuple[Planned, ...]:
    """Return 32 requests, four a second, of short and middling prompts."""
    draw = random.Random(_SEED)
    return tuple(Planned(i / 4, draw.randint(64, 512), draw.randint(64, 256)) for i in range(32))


def burst() -> tuple[Planned, ...]:
    """Return 48 requests that come at once."""
    draw = random.Random(_SEED)
    return tuple(Planned(0.0, draw.randint(128, 384), draw.randint(128, 256)) for _ in range(48))


def mixed() -> tuple[Planned, ...]:
    """Return 48 requests of a Poisson process, six a second: three in four long, the others short."""
    draw = random.Random(_SEED)
    times = accumulate(draw.expovariate(6.0) for _ in range(48))
    return tuple(
        Planned(
            at,
            draw.randint(1024, 2048) if draw.random() < 0.75 else draw.randint(64, 128),
            draw.randint(64, 256),
        )
        for at in times
    )


def shared_head() -> tuple[Planned, ...]:
    """Return 48 requests, eight a second, whose prompts have their first 1,024 tokens in common."""
    draw = random.Random(_SEED)
    return tuple(Planned(i / 8, 1024 + draw.randint(32, 128), 256, head=1024) for i in range(48))
