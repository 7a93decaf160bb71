"""Sweeps that start an engine anew for each step: draft tokens, types of the KV cache, a patch on and off."""

import shlex
from enum import StrEnum

from pydantic import Field, model_validator

from engine_host.protocol.base import Command, Seconds, Wire
from engine_host.protocol.bench.comparison import Verdict
from engine_host.protocol.bench.lab import LabRun, Measuring, Quantity, WorkloadName
from engine_host.protocol.errors import Problem
from engine_host.protocol.language.spoken import Sentence, Spoken

MOST_ARMS = 16


class SweepKind(StrEnum):
    """The thing that a sweep changes from start to start."""

    SPECULATION = "speculation"
    KV = "kv"
    PATCH = "patch"


class RunSweep(Command):
    """A sweep of an engine that runs: it is stopped, started with each value in turn, and restored after.

    `values` are draft tokens a step (0 is without speculation), types of the KV cache, or one patch; the
    first is what the others are compared with. `passes` go through them forth and back, so that a machine
    that drifts does so for all.
    """

    kind: SweepKind
    values: tuple[str, ...] = Field((), max_length=MOST_ARMS)
    engine: str | None = None
    speculation: str | None = Field(None, description="the kind that is swept, where the engine has none")
    workload: WorkloadName = WorkloadName.QUICK
    rounds: int | None = Field(None, ge=1, le=1000)
    passes: int | None = Field(None, ge=1, le=10)
    seed: int | None = Field(None, ge=0, lt=1 << 53)

    @model_validator(mode="after")
    def _values_fit(self) -> "RunSweep":
        if self.kind is SweepKind.PATCH and len(self.values) != 1:
            raise ValueError("name one patch")
        if self.kind is SweepKind.SPECULATION and any(
            not value.isdecimal() or int(value) > 16 for value in self.values
        ):
            raise ValueError("draft tokens are whole numbers from 0 to 16")
        if len(set(self.values)) != len(self.values):
            raise ValueError("a value stands twice")
        return self

    @property
    def command(self) -> str:
        """The command line that does the same."""
        words = ["sndr", "bench", "sweep", self.kind.value, *self.values]
        for option, value in (
            ("--engine", self.engine),
            ("--speculation", self.speculation),
            ("--workload", None if self.workload is WorkloadName.QUICK else self.workload.value),
            ("--rounds", self.rounds),
            ("--passes", self.passes),
            ("--seed", self.seed),
        ):
            if value is not None:
                words += [option, str(value)]
        return shlex.join(words)


class ArmMemory(Wire):
    """The memory of one start, over all its devices; None is not known.

    Predicted is what fit says of the start, told is what the engine's log says, and held what the ledger
    of processes read after it was measured.
    """

    predicted_kv_cache_bytes: int | None = None
    told_kv_cache_bytes: int | None = None
    predicted_kv_cache_tokens: int | None = None
    told_kv_cache_tokens: int | None = None
    predicted_bytes: int | None = None
    held_gpu_bytes: int | None = None
    held_main_memory_bytes: int | None = None


class SweepArm(Wire):
    """One start of a sweep: the run that was measured, or the problem for which there is none."""

    value: str
    run: str = ""
    complete: bool = False
    problem: Problem | None = None
    refused: bool = Field(False, description="the problem was known before any start, and none was tried")
    acceptance_length: float | None = Field(None, description="tokens a step, as the engine told them")
    memory: ArmMemory | None = None


class SweepSamples(Wire):
    """The single values behind the medians of one start, in the order in which they were asked."""

    value: str
    run: str
    part: str
    decode_tokens_per_second: tuple[float, ...] = ()
    aggregate_tokens_per_second: tuple[float, ...] = Field((), description="of rounds")
    prefill_tokens_per_second: tuple[float, ...] = ()
    ttft_seconds: tuple[float, ...] = ()
    itl_seconds: tuple[float, ...] = Field((), description="medians of answers")
    tpot_seconds: tuple[float, ...] = ()
    total_seconds: tuple[float, ...] = ()


class SweepChange(Spoken):
    """A quantity at one value against the first one; `words` tell the verdict, or why there is none."""

    value: str
    part: str
    quantity: Quantity
    verdict: Verdict | None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    words: Sentence


class LabSweep(Wire):
    """A sweep: its starts in the order they were made, and what became of the engine after them."""

    id: str
    kind: SweepKind
    engine: str
    started_at: Seconds
    seconds: float = 0.0
    command: str
    values: tuple[str, ...]
    arms: tuple[SweepArm, ...] = ()
    complete: bool = False
    ended_by: str = ""
    measuring: Measuring | None = Field(None, description="who is at it now; of one that ended, None")
    restored: bool = Field(False, description="the engine runs again as it did before")
    not_restored: Problem | None = None


class SweepReport(Wire):
    """A sweep with its runs, without their texts, the values behind each median, and what differs."""

    sweep: LabSweep
    runs: tuple[LabRun, ...]
    changes: tuple[SweepChange, ...]
    samples: tuple[SweepSamples, ...] = ()


class SweepPage(Wire):
    """The sweeps of this machine, newest first, and files that could not be read."""

    seq: int = 0
    sweeps: tuple[LabSweep, ...]
    unreadable: tuple[str, ...] = ()
