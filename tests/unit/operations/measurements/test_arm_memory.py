"""The memory of one start of a sweep, from fit, the engine's log and the ledger of processes."""

import pytest

from engine_host.core.errors import HostError
from engine_host.operations.measurements.arm_memory import ArmMemoryReader
from engine_host.protocol.bench.sweeps import ArmMemory
from engine_host.protocol.engines import Engine, EngineState, Readings
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.fit import DeviceFit, FitPart, FitReport, FitRequest, PartSource, Verdict
from engine_host.protocol.launch.plans import EngineKind
from engine_host.protocol.telemetry import MemoryDevice, MemoryPage, MemoryPart, MemoryUser
from tests.plan_samples import plain_plan
from tests.unit.asynchronous import run

ENGINE = Engine(
    id="e",
    name="a",
    engine="llama.cpp",
    server="prebuilt",
    server_version="b1",
    state=EngineState.READY,
    plan=plain_plan(name="a"),
    created_at=1.0,
    readings=Readings(at=1.0, kv_capacity=4096),
)


def device(name: str, memory: int | None, kv: int | None) -> MemoryDevice:
    own = MemoryUser(
        pid=1, name="a", memory=memory, engine="e", parts=(MemoryPart(name="KV cache", memory=kv),)
    )
    other = MemoryUser(pid=2, name="b", memory=7, engine="other")
    return MemoryDevice(name=name, total=100, used=50, users=(own, other))


def part(name: str, size: int) -> FitPart:
    return FitPart(name=name, size=size, low=size, high=size, source=PartSource.FORMULA)


async def predicted(asked: FitRequest) -> FitReport:
    assert asked.instead_of == ("*",)
    parts = (part("weights", 30), part("KV cache", 8))
    one = DeviceFit(name="d", total=100, taken=0, room=90, parts=parts, needed=38, free_after=52)
    return FitReport(
        model="m", engine=EngineKind.LLAMA_CPP, kv="f16", context=4096, streams=1, tensor_parallel=1,
        verdict=Verdict.FITS, devices=(one,), kv_pool_tokens=4096,
    )  # fmt: skip


async def unknown(_asked: FitRequest) -> FitReport:
    raise HostError(Reason.UNSUPPORTED, "Its shape is not known.")


@pytest.mark.parametrize(
    ("devices", "found"),
    [
        (
            (device("GPU 0: H100", 40, 9), device("RAM", 5, None)),
            ArmMemory(held_gpu_bytes=40, held_main_memory_bytes=5),
        ),
        ((device("RAM", None, 9),), ArmMemory(told_kv_cache_bytes=9)),
        ((), ArmMemory()),
    ],
)
def test_what_is_not_known_of_every_device_is_none(
    devices: tuple[MemoryDevice, ...], found: ArmMemory
) -> None:
    async def ledger() -> MemoryPage:
        return MemoryPage(seq=0, at=1.0, devices=devices)

    told = run(ArmMemoryReader(unknown, ledger).read(ENGINE))
    assert told == found.model_copy(update={"told_kv_cache_tokens": 4096})
    both = run(ArmMemoryReader(predicted, ledger).read(ENGINE))
    assert both == told.model_copy(
        update={"predicted_kv_cache_bytes": 8, "predicted_bytes": 38, "predicted_kv_cache_tokens": 4096}
    )
