"""The run of somebody else: read out of a file, asked again here, and sent to be compared."""

from pathlib import Path

from engine_host.core.outside import run_file
from engine_host.protocol.bench.lab import LabRun, RunBench, WorkloadName

_RUNS_OF_PARTS = {WorkloadName.SERVING}


def request_of(run: LabRun, engine: str | None) -> RunBench:
    """Return what asks the same as a run with parts did; nothing else of it is taken."""
    first = run.parts[0]
    rounds = max(1, first.measured // max(1, first.streams))
    return RunBench(
        workload=run.workload,
        engine=engine,
        seed=run.seed if 0 <= run.seed < 1 << 53 else None,
        rounds=min(rounds, 1000),
        streams=tuple(part.streams for part in run.parts) if run.knee is not None else (),
        only=tuple(part.name for part in run.parts) if run.workload in _RUNS_OF_PARTS else (),
    )


def run_of_file(path: str) -> LabRun:
    """Return the run in a file of this machine. Raises HostError."""
    return run_file.run_of_file(Path(path))


def without_texts(run: LabRun) -> LabRun:
    """Return a run without its answers, which nothing is judged by once it was measured."""
    bare = tuple(one.model_copy(update={"text": ""}) for one in run.samples)
    return run.model_copy(update={"samples": bare})
