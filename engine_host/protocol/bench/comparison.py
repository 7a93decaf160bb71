"""Two runs of the bench lab side by side: the verdicts, what differs, and what speaks against comparing."""

from enum import StrEnum

from pydantic import Field

from engine_host.protocol.base import Command, Query, Wire
from engine_host.protocol.bench.lab import Figure, LabRun, Quantity
from engine_host.protocol.language.spoken import Sentence, Spoken


class Verdict(StrEnum):
    """The result of a comparison of B with A."""

    FASTER = "faster"
    SLOWER = "slower"
    CANNOT_TELL = "cannot_tell"


class Caution(StrEnum):
    """A reason to doubt that a difference of figures is one of what was to be compared."""

    ONE_AFTER_THE_OTHER = "one_after_the_other"
    OTHER_MODEL = "other_model"
    OTHER_MACHINE = "other_machine"
    OTHER_DRIVER = "other_driver"
    OTHER_TOKENS = "other_tokens"
    PARTIAL = "partial"
    PLAN_UNKNOWN = "plan_unknown"


class CompareRuns(Query):
    """Two runs to compare: each a run's name, or a beginning or an end of one, or `latest`."""

    a: str
    b: str


class CompareFile(Command):
    """A run out of a file of somebody else beside one of this host: its name, or `latest`."""

    run: LabRun
    other: str
    first: bool = Field(True, description="the run of the file is A")


class Doubt(Spoken):
    """A caution in words."""

    caution: Caution
    text: Sentence


class Differing(Wire):
    """Something that is not the same in both runs; empty where one has nothing of it."""

    name: str
    a: str
    b: str


class ComparedFigure(Spoken):
    """One quantity of one part in both runs.

    `change` is the share by which B is faster (or, below 0, slower), from `low` to `high` (98 %); a time
    counts by its speed: half of it is twice as fast, 1.0. A figure without a verdict is not judged, and
    `words` says why.
    """

    part: str
    quantity: Quantity
    a: Figure
    b: Figure
    verdict: Verdict | None
    words: Sentence
    change: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    more_rounds: int | None = None


class LabComparison(Wire):
    """B beside A, both without their samples; `in_turns` is True where they were measured in turns."""

    a: LabRun
    b: LabRun
    in_turns: bool
    doubts: tuple[Doubt, ...]
    differing: tuple[Differing, ...]
    figures: tuple[ComparedFigure, ...]
