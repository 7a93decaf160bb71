"""The memory of one start of a sweep: predicted by fit, told by its log, held by its processes."""

from collections.abc import Awaitable, Callable, Iterable

from engine_host.core.errors import HostError
from engine_host.operations.fit import request_of
from engine_host.protocol.bench.sweeps import ArmMemory
from engine_host.protocol.engines import Engine
from engine_host.protocol.launch.fit import FitReport, FitRequest
from engine_host.protocol.launch.plans import ALL_ENGINES
from engine_host.protocol.telemetry import MemoryPage

_KV = "KV cache"
_RAM = "RAM"


class ArmMemoryReader:
    """Reads both sides once a start was measured, when all that it needs is held."""

    def __init__(
        self,
        fit: Callable[[FitRequest], Awaitable[FitReport]],
        ledger: Callable[[], Awaitable[MemoryPage]],
    ) -> None:
        self._fit = fit
        self._ledger = ledger

    async def read(self, engine: Engine) -> ArmMemory:
        """Return what is known of an engine that runs."""
        devices = (await self._ledger()).devices
        mine = [(one.name, user) for one in devices for user in one.users if user.engine == engine.id]
        parts = [part.memory for _, user in mine for part in user.parts if part.name == _KV]
        predicted = await self._predicted(engine)
        return ArmMemory(
            predicted_kv_cache_bytes=None
            if predicted is None
            else _sum(part.size for one in predicted.devices for part in one.parts if part.name == _KV),
            told_kv_cache_bytes=_sum(parts),
            predicted_kv_cache_tokens=None if predicted is None else predicted.kv_pool_tokens,
            told_kv_cache_tokens=None if engine.readings is None else engine.readings.kv_capacity,
            predicted_bytes=None if predicted is None else _sum(one.needed for one in predicted.devices),
            held_gpu_bytes=_sum(user.memory for name, user in mine if name != _RAM),
            held_main_memory_bytes=_sum(user.memory for name, user in mine if name == _RAM),
        )

    async def _predicted(self, engine: Engine) -> FitReport | None:
        asked = request_of(engine.plan).model_copy(update={"instead_of": (ALL_ENGINES,)})
        try:
            return await self._fit(asked)
        except HostError:
            # Its shape is not known, or its file is gone: nothing is predicted then.
            return None


def _sum(sizes: Iterable[int | None]) -> int | None:
    """Return all of them together; None where there are none, or one is not known."""
    known = list(sizes)
    return None if not known or None in known else sum(size or 0 for size in known)
