"""The operations of the bench lab; `table` has them with all others."""

from typing import Any

from engine_host.protocol.bench.checks import VerifyEngine
from engine_host.protocol.bench.comparison import CompareFile, CompareRuns, LabComparison
from engine_host.protocol.bench.lab import LabPage, LabRun, MarkBaseline, RunBench
from engine_host.protocol.bench.profiles import ProfileEngine
from engine_host.protocol.bench.sweeps import RunSweep, SweepPage, SweepReport
from engine_host.protocol.errors import Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.operations.definition import Nothing, Operation

# Each row: name, method, path, request, answer, what it does. Formatted by hand, to be read as a table.
# fmt: off

BENCH_RUNS = Operation(
    "bench.list", "GET", "/v1/bench/runs", Nothing, LabPage,
    "The runs that were measured on this machine, newest first, without their samples.",
    command="bench list", seconds=60.0)
BENCH_RUN = Operation(
    "bench.show", "GET", "/v1/bench/runs/{id}", Nothing, LabRun,
    "One of them with every sample; also by a beginning or an end of its name, or as `latest`.",
    reasons=(Reason.NOT_FOUND,), command="bench report", seconds=60.0)
COMPARE_RUNS = Operation(
    "bench.compare", "GET", "/v1/bench/comparison", CompareRuns, LabComparison,
    "Two of them side by side: by how much B is faster, what differs, what speaks against comparing them.",
    reasons=(Reason.NOT_FOUND, Reason.CONFLICT), command="bench compare", seconds=60.0)
COMPARE_FILE = Operation(
    "bench.compare_file", "POST", "/v1/bench/comparison", CompareFile, LabComparison,
    "A run that somebody else measured beside one of these; it is read, and not kept.",
    reasons=(Reason.NOT_FOUND, Reason.CONFLICT), command="bench compare", seconds=60.0)
RUN_BENCH = Operation(
    "bench.run", "POST", "/v1/bench/runs", RunBench, Job,
    "Measure an engine that runs, or two in turns; the job's result names the runs that were kept, also of "
    "a job that was cancelled (`evidence` of its error).",
    status=202, reasons=(Reason.NOT_FOUND, Reason.NO_ENGINE_RUNS, Reason.ENGINE_NOT_READY, Reason.CONFLICT,
    Reason.BAD_REQUEST), job=JobKind.BENCH_RUN, command="bench run")
RUN_SWEEP = Operation(
    "bench.sweep", "POST", "/v1/bench/sweeps", RunSweep, Job,
    "Stop an engine, start it with each value in turn, measure it, and start it again as it was; the job's "
    "result names the sweep, also of a job that was cancelled (`evidence` of its error).",
    status=202, reasons=(Reason.NOT_FOUND, Reason.NO_ENGINE_RUNS, Reason.ENGINE_NOT_READY, Reason.CONFLICT,
    Reason.UNSUPPORTED, Reason.BAD_REQUEST), job=JobKind.BENCH_SWEEP, command="bench sweep")
BENCH_SWEEPS = Operation(
    "bench.sweeps", "GET", "/v1/bench/sweeps", Nothing, SweepPage,
    "The sweeps of this machine that started an engine anew for each step, newest first.",
    command="bench sweeps", seconds=60.0)
BENCH_SWEEP = Operation(
    "bench.sweep_report", "GET", "/v1/bench/sweeps/{id}", Nothing, SweepReport,
    "One of them with its runs, and each value against the first; also as `latest`.",
    reasons=(Reason.NOT_FOUND, Reason.BAD_REQUEST), command="bench sweeps", seconds=60.0)
PROFILE_ENGINE = Operation(
    "bench.profile", "POST", "/v1/bench/profiles", ProfileEngine, Job,
    "Record steps of vLLM through its own profiler, where the start of the engine allowed it; its result "
    "is a `ProfileReport`: the kernels by their time, and the Chrome trace.",
    status=202, reasons=(Reason.NOT_FOUND, Reason.NO_ENGINE_RUNS, Reason.ENGINE_NOT_READY, Reason.CONFLICT,
    Reason.UNSUPPORTED), job=JobKind.BENCH_PROFILE, command="bench profile")
VERIFY_ENGINE = Operation(
    "bench.verify", "POST", "/v1/bench/verifications", VerifyEngine, Job,
    "Check what an engine that runs answers, and that the patches of its plan are live; the job's result is "
    "a report, also of a job that was cancelled (`evidence` of its error). Failed checks are no failed job.",
    status=202, reasons=(Reason.NOT_FOUND, Reason.NO_ENGINE_RUNS, Reason.ENGINE_NOT_READY, Reason.CONFLICT),
    job=JobKind.BENCH_VERIFY, command="bench verify")
MARK_BASELINE = Operation(
    "bench.baseline", "PUT", "/v1/bench/runs/{id}/baseline", MarkBaseline, LabPage,
    "Hold later runs of its workload, model and engine to this one, instead of another; or to none any more.",
    reasons=(Reason.NOT_FOUND, Reason.BAD_REQUEST, Reason.CONFLICT, Reason.NOT_WRITABLE),
    command="bench baseline", seconds=60.0)
REMOVE_BENCH_RUN = Operation(
    "bench.remove", "DELETE", "/v1/bench/runs/{id}", Nothing, LabPage,
    "Remove one, also one that cannot be read; the answer is what is left.",
    reasons=(Reason.NOT_FOUND, Reason.CONFLICT, Reason.NOT_WRITABLE), command="bench remove", seconds=60.0)

# fmt: on

OPERATIONS: tuple[Operation[Any, Any], ...] = tuple(
    value for value in globals().values() if isinstance(value, Operation)
)
