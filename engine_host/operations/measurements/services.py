"""The operations that measure and judge, made from what they share."""

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobRunner
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.package_data import resources
from engine_host.core.paths import Folders
from engine_host.core.store import Store
from engine_host.engines.manager import EngineManager
from engine_host.gateway.inspection.prefix_lens import PrefixLens
from engine_host.launch.dependencies import Environment
from engine_host.launch.proofs import KernelProofs
from engine_host.library.index import IndexedModel
from engine_host.operations.measurements.arm_memory import ArmMemoryReader
from engine_host.operations.measurements.bench import BenchOperations
from engine_host.operations.measurements.diagnosis import CeilingOf, DiagnosisOperations
from engine_host.operations.measurements.memory import MemoryOperations
from engine_host.operations.measurements.profiles import ProfileOperations
from engine_host.operations.measurements.proofs import ProofOperations
from engine_host.operations.measurements.quality import QualityOperations
from engine_host.operations.measurements.sweeps import SweepOperations
from engine_host.operations.measurements.verify import VerifyOperations
from engine_host.operations.patches.of_engines import EnginePatchTracker
from engine_host.operations.plans import PlanOperations
from engine_host.protocol.bench.checks import VerifyAfterStart
from engine_host.protocol.engines import Engine
from engine_host.protocol.host import Playback
from engine_host.protocol.launch.fit import FitReport, FitRequest
from engine_host.telemetry.gpus import Gpus
from engine_host.telemetry.history import History


def measurement_services(
    jobs: JobRunner,
    events: EventLog,
    log_buffer: LogBuffer,
    store: Store,
    plans: PlanOperations,
    proofs: KernelProofs,
    engines: EngineManager,
    patches: EnginePatchTracker,
    on_start: Callable[[Callable[[Engine], None]], None],
    verify_level: Callable[[], VerifyAfterStart],
    find_model: Callable[[str, Collection[str]], Awaitable[IndexedModel]],
    find_environment: Callable[[str | None], Awaitable[Environment]],
    machine: Callable[[], str],
    gpus: Gpus,
    history: History,
    ceiling_of: CeilingOf,
    fit: Callable[[FitRequest], Awaitable[FitReport]],
    prefixes: PrefixLens,
    folders: Folders,
    refuse_others: Callable[[], None],
    played: Callable[[], Playback | None],
) -> tuple[Any, ...]:
    """Return what proves kernels, measures quality and speed, and judges it.

    `ceiling_of` tells what the hardware allows an engine, `fit` what memory a start takes, `machine` its
    words, `on_start` of starts that serve for the first time, and `verify_level` what is checked of them;
    `refuse_others` raises while starts of somebody else's are under way.
    """
    verify = VerifyOperations(jobs, folders.run, engines.alive, engines.get, patches.probe, verify_level)
    on_start(verify.after_start)
    memory = MemoryOperations(gpus, engines.alive, played, events)
    arms = ArmMemoryReader(fit, memory.memory)
    common = (jobs, events, log_buffer)
    return (
        ProofOperations(*common, plans, proofs, gpus.read, find_environment, engines.alive, folders.run),
        QualityOperations(
            *common,
            store,
            plans,
            find_model,
            find_environment,
            engines.alive,
            machine,
            lambda: resources() / "texts",
            folders.run,
        ),
        BenchOperations(jobs, events, log_buffer, folders, engines.alive, gpus.read, engines.wake),
        SweepOperations(*common, folders, engines, plans, gpus.read, refuse_others, arms.read),
        ProfileOperations(jobs, folders, engines.alive),
        verify,
        memory,
        DiagnosisOperations(engines.alive, engines.get, history, prefixes, gpus, events, ceiling_of),
    )
