"""Records for tests: an engine of llama.cpp that was killed, with the fields that a test looks at."""

from typing import Any

from engine_host.protocol.bench.autopsy import Autopsy, RecordedSeries
from engine_host.protocol.engines import EngineState
from engine_host.protocol.errors import Fix, Problem, Reason
from tests.plan_samples import engine_of, plain_plan

ID = "20260102-030405-abcdef"
GIB = float(2**30)


def series(name: str, *values: float | None, unit: str = "bytes", first: float = 0.0) -> RecordedSeries:
    """One series of steps of a second."""
    return RecordedSeries(name=name, unit=unit, title=name, first=first, values=values)


def problem(reason: Reason = Reason.OUT_OF_MEMORY, **evidence: Any) -> Problem:
    """A problem as an adapter tells it."""
    return Problem(reason=reason, message="It ended.", fix=Fix(text="Do less."), evidence=evidence)


def record(
    *, plan: dict[str, Any] | None = None, engine: dict[str, Any] | None = None, **fields: Any
) -> Autopsy:
    """A record; what is not given is plain."""
    died = engine_of(
        plain_plan(**(plan or {})),
        EngineState.FAILED,
        **{"id": "e", "ready_at": 1.0, "problem": problem(), **(engine or {})},
    )
    plain = {"id": ID, "at": 700.0, "program": "1", "engine": died, "seconds": 600.0, "step": 1.0}
    return Autopsy.model_validate(plain | fields)
