"""The holders of memory: every process on the GPUs, and our engines with their parts."""

import asyncio
import time
from collections.abc import Callable, Sequence

from engine_host.core.event_log import EventLog
from engine_host.operations.performs import performs
from engine_host.protocol.engines import Engine
from engine_host.protocol.host import Gpu, Playback
from engine_host.protocol.launch.plans import EngineKind
from engine_host.protocol.operations import table as ops
from engine_host.protocol.telemetry import MemoryDevice, MemoryPage, MemoryPart, MemoryUser
from engine_host.telemetry.gpus import Gpus
from engine_host.telemetry.machine import memory_now, process_name, process_tree
from engine_host.telemetry.memory_parts import llamacpp_parts, vllm_parts, vllm_parts_in_ram

_Tree = dict[int, Engine]


class MemoryOperations:
    """Reads the GPUs and RAM afresh at each question."""

    def __init__(
        self,
        gpus: Gpus,
        engines: Callable[[], Sequence[Engine]],
        played: Callable[[], Playback | None],
        events: EventLog,
    ) -> None:
        """`engines` are those with a process; `played` is the trace that is played."""
        self._gpus = gpus
        self._engines = engines
        self._played = played
        self._events = events

    @performs(ops.MEMORY)
    async def memory(self) -> MemoryPage:
        """Return who holds memory now."""
        engines = tuple(engine for engine in self._engines() if engine.pid)
        devices = await asyncio.to_thread(self._read, engines)
        played = self._played()
        recorded = () if played is None else played.gpus
        return MemoryPage(
            seq=self._events.seq,
            at=time.time(),
            devices=(*(gpu_device(gpu, {}, (), recorded=True) for gpu in recorded), *devices),
        )

    def _read(self, engines: Sequence[Engine]) -> tuple[MemoryDevice, ...]:
        own = {pid: engine for engine in engines if engine.pid for pid in process_tree(engine.pid)}
        reading = self._gpus.read_with_holders(process_name)
        order = tuple(gpu.uuid for gpu in reading.gpus)
        return (*(gpu_device(gpu, own, order) for gpu in reading.gpus), ram_device(*memory_now(), engines))


def gpu_device(gpu: Gpu, own: _Tree, order: Sequence[str], *, recorded: bool = False) -> MemoryDevice:
    """Return a GPU with its holders: an engine of ours once, with its parts; others by their names."""
    users: list[MemoryUser] = []
    mine: dict[str, tuple[Engine, list[int | None]]] = {}
    for holder in gpu.holders:
        engine = own.get(holder.pid)
        if engine is None:
            users.append(MemoryUser(pid=holder.pid, name=holder.name, memory=holder.memory))
        else:
            mine.setdefault(engine.id, (engine, []))[1].append(holder.memory)
    for engine, sizes in mine.values():
        held = None if None in sizes else sum(size or 0 for size in sizes)
        users.append(_engine(engine, held, _parts(engine, gpu, order, held)))
    known = [user.memory for user in users]
    rest = None if None in known else max(0, gpu.memory_used - sum(size or 0 for size in known))
    return MemoryDevice(
        name=f"GPU {gpu.index}: {gpu.name}",
        total=gpu.memory_total,
        used=gpu.memory_used,
        users=_most_first(users),
        rest=rest,
        recorded=recorded,
    )


def ram_device(total: int, used: int, engines: Sequence[Engine]) -> MemoryDevice:
    """Return RAM with the engines in it; what other programs hold is not told apart."""
    users = []
    for engine in engines:
        held = engine.readings.memory if engine.readings is not None else None
        parts = (
            llamacpp_parts(engine.buffers, None, held)
            if _is_llamacpp(engine)
            else vllm_parts_in_ram(engine.buffers, held)
        )
        users.append(_engine(engine, held, parts))
    # Pages of files count as free for the system, and for the engine as its own.
    of_files = sum(engine.readings.memory_of_files or 0 for engine in engines if engine.readings)
    known = [user.memory for user in users]
    rest = None if None in known else max(0, used + of_files - sum(size or 0 for size in known))
    return MemoryDevice(name="RAM", total=total, used=used, users=_most_first(users), rest=rest)


def _parts(engine: Engine, gpu: Gpu, order: Sequence[str], held: int | None) -> tuple[MemoryPart, ...]:
    if not _is_llamacpp(engine):
        return vllm_parts(engine.buffers, held)
    # llama.cpp counts the GPUs that it was given.
    given = engine.plan.gpus or tuple(order)
    return llamacpp_parts(engine.buffers, given.index(gpu.uuid) if gpu.uuid in given else None, held)


def _engine(engine: Engine, held: int | None, parts: tuple[MemoryPart, ...]) -> MemoryUser:
    return MemoryUser(pid=engine.pid or 0, name=engine.name, memory=held, engine=engine.id, parts=parts)


def _is_llamacpp(engine: Engine) -> bool:
    return engine.engine == EngineKind.LLAMA_CPP


def _most_first(users: Sequence[MemoryUser]) -> tuple[MemoryUser, ...]:
    return tuple(sorted(users, key=lambda user: -(user.memory or 0)))
