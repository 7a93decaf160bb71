"""Diagnoses: what counts as not measured, and what only did not happen yet."""

from engine_host.core.diagnosis.slow_causes import Measured
from engine_host.operations.measurements.diagnosis import _not_measured
from engine_host.protocol.engines import EngineState, Readings
from tests.plan_samples import engine_of, plain_plan


def test_prefix_hits_that_an_engine_counts_are_measured_before_anything_was_looked_up() -> None:
    ready = engine_of(plain_plan(), EngineState.READY)
    counts = ready.model_copy(update={"readings": Readings(at=0.0, prefix_queries_total=0)})
    silent = ready.model_copy(update={"readings": Readings(at=0.0)})
    nothing = Measured({}, 1.0, (), {})
    assert "prefix hits" in _not_measured([silent], nothing)[1]
    assert "prefix hits" not in _not_measured([counts], nothing)[1]
