"""Reasons for which an engine is slower than it could be, each with its evidence and what would help."""

from enum import StrEnum

from pydantic import Field

from engine_host.protocol.base import Page, Query
from engine_host.protocol.errors import Fix
from engine_host.protocol.language.spoken import Sentence, Spoken
from engine_host.protocol.launch.plans import Finding

TOO_LITTLE = "Too little was measured to judge it: let it answer for ten seconds, and look again."
"""The verdict where an engine worked, but too short a time."""


class SlowReason(StrEnum):
    """A reason for which an engine is slow."""

    THROTTLED = "throttled"
    PCIE_NARROW = "pcie_narrow"
    CPU_BUSY = "cpu_busy"
    RAM_SHORT = "ram_short"
    QUEUED = "queued"
    KV_FULL = "kv_full"
    PREEMPTED = "preempted"
    PREFIX_MISSED = "prefix_missed"
    DRAFTS_REFUSED = "drafts_refused"
    EAGER = "eager"
    ON_PROCESSOR = "on_processor"
    ATTENTION_BACKEND = "attention_backend"
    ROOFLINE = "roofline"


class SlowCause(Spoken):
    """One reason; `share` is how much of the engine's busy time it concerned, 0 to 1.

    It is null for what holds all the time and whose cost was not measured, such as a setting.
    """

    reason: SlowReason
    engine: str | None = Field(None, description="the public name; null for the machine")
    sentence: Sentence
    share: float | None = Field(None, ge=0.0, le=1.0)
    evidence: dict[str, float | str] = Field(default_factory=dict)
    fix: Fix | None = None


class DiagnosisQuery(Query):
    """One engine by id or name, or all that run; and how far back to look."""

    engine: str | None = None
    minutes: float = Field(10.0, gt=0.0, le=44_640.0, allow_inf_nan=False)


class Diagnosis(Page):
    """The causes, the gravest first.

    `busy` is the seconds, each counted whole, in which an engine worked in the time looked at.
    `since_ready` has the seconds of those that were ready for a part of that time alone.
    `too_little` names engines that worked too short a time to be judged; nothing is said of their speed.
    `not_measured` names what could not be judged, because nothing measures it on this machine or engine.
    """

    seq: int
    seconds: float
    busy: dict[str, float]
    causes: tuple[SlowCause, ...]
    since_ready: dict[str, float] = Field(default_factory=dict)
    too_little: tuple[str, ...] = ()
    not_measured: tuple[str, ...] = ()
    instead: Fix | None = Field(None, description="what to measure where a bandwidth is not known")
    no_gpu: Finding | None = Field(None, description="why no GPU is listed, and what to do")
