"""The process that is at a run or a sweep: one that was killed said no word of its end, and runs no more."""

import os
from typing import TypeVar

from engine_host.engines.process.birth import born
from engine_host.protocol.bench.lab import LabRun, Measuring
from engine_host.protocol.bench.sweeps import LabSweep

Kept = TypeVar("Kept", LabRun, LabSweep)


def measuring() -> Measuring | None:
    """Return this process as the one that measures; None where the system does not say when it began."""
    begun = born(os.getpid())
    return None if begun is None else Measuring(pid=os.getpid(), born=begun)


def seen(what: Kept) -> Kept:
    """Return what is kept as it stands now."""
    at = what.measuring
    return what if at is None or born(at.pid) == at.born else what.model_copy(update={"measuring": None})
