"""Series of the time looked at, and the steps of it in which one engine worked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from engine_host.protocol.engines import Engine
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.fit import Roofline

Values = Sequence[float | None]
Ceiling = Callable[[int, int | None, float | None], Roofline]
"""The ceilings of so many streams, of a context in tokens (None: just begun) and of an acceptance length."""

ENOUGH = 5
"""Steps of work from which an engine's speed is judged: a cause of fewer is chance."""


@dataclass(frozen=True)
class Measured:
    """All series of the time looked at, on one grid of steps of `step` seconds; a gap is None."""

    series: Mapping[str, Values]
    step: float = 1.0
    gpus: Sequence[Gpu] = ()
    lost: Mapping[str, float] = field(default_factory=dict)
    """Seconds that conversations waited for prompts that were read again, by the id of the engine."""

    ceilings: Mapping[str, Ceiling] = field(default_factory=dict)
    """What the hardware allows an engine, by its id; missing where that cannot be computed."""

    def values(self, name: str) -> Values:
        """Return a series; of one that was not measured nothing."""
        return self.series.get(name, ())

    def of(self, engine: Engine, name: str) -> Values:
        """Return a series of an engine."""
        return self.values(f"engine.{engine.id}.{name}")


@dataclass(frozen=True)
class Busy:
    """The steps in which one engine worked."""

    engine: Engine
    steps: frozenset[int]

    @property
    def enough(self) -> bool:
        """True where it worked long enough to be judged."""
        return len(self.steps) >= ENOUGH

    def share(self, values: Values, holds: Callable[[float], bool]) -> float | None:
        """Return the share of the busy steps that were measured for which this holds; None without any."""
        known = [value for step in self.steps if step < len(values) and (value := values[step]) is not None]
        return sum(map(holds, known)) / len(known) if known else None

    def mean(self, values: Values) -> float | None:
        """Return the mean over the busy steps that were measured."""
        known = [value for step in self.steps if step < len(values) and (value := values[step]) is not None]
        return sum(known) / len(known) if known else None


def busy_of(engine: Engine, measured: Measured) -> Busy:
    """Return the steps in which an engine answered or had somebody wait, for however short a moment."""
    steps: set[int] = set()
    for name in ("requests.running", "requests.waiting", "decode_rate", "prefill_rate", "ttft"):
        values = measured.values(f"engine.{engine.id}.{name}")
        steps.update(step for step, value in enumerate(values) if value)
    return Busy(engine, frozenset(steps))
