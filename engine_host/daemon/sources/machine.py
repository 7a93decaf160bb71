"""The machine as plans and measurements ask for it: words, driver, and who holds memory of its GPUs."""

from collections.abc import Callable, Sequence
from pathlib import Path

from engine_host.launch.preflight.machine import Holder, MachineState
from engine_host.protocol.engines import Engine
from engine_host.protocol.launch.plans import Finding
from engine_host.telemetry.gpus import Gpus
from engine_host.telemetry.machine import (
    MachineMonitor,
    free_disk,
    has_cuda_compat,
    process_name,
    process_tree,
    shared_memory_size,
)


class MachineSource:
    """Reads the machine afresh at each question."""

    def __init__(
        self,
        machine: MachineMonitor,
        gpus: Gpus,
        engines: Callable[[], Sequence[Engine]],
        endpoint: Callable[[], tuple[Finding, ...]],
        cache: Path,
    ) -> None:
        """`engines` are those with a process; `endpoint` says what was noticed about its address."""
        self._machine = machine
        self._gpus = gpus
        self._engines = engines
        self._endpoint = endpoint
        self._cache = cache

    def words(self) -> str:
        """The processor and the GPUs in words, for whoever reads a figure elsewhere."""
        reading, facts = self._gpus.read(), self._machine.facts
        cards = ", ".join(gpu.name for gpu in reading.gpus)
        words = f"{facts.cpu_name}, {facts.cpu_threads} threads"
        return f"{cards} (driver {reading.driver}), {words}" if cards else words

    def state(self) -> MachineState:
        """The machine as the checks before a start see it."""
        reading = self._gpus.read()
        return MachineState(
            driver=reading.driver,
            cuda=reading.cuda,
            holders=self._holders(),
            cache_free=free_disk(self._cache),
            shared=shared_memory_size(),
            endpoint=self._endpoint(),
            compat=has_cuda_compat(),
        )

    def _holders(self) -> tuple[Holder, ...]:
        """Tell who holds memory of the GPUs, as far as the driver tells."""
        own = {pid: engine for engine in self._engines() if engine.pid for pid in process_tree(engine.pid)}
        return tuple(
            Holder(
                gpu.index,
                holder.pid,
                own[holder.pid].name if holder.pid in own else holder.name,
                holder.memory,
                own[holder.pid].id if holder.pid in own else "",
            )
            for gpu in self._gpus.read_with_holders(process_name).gpus
            for holder in gpu.holders
            if holder.memory is not None
        )
