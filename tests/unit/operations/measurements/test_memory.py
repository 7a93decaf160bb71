"""Memory by process and part: what is not told is None, and nobody's share is invented."""

from engine_host.operations.measurements.memory import gpu_device, ram_device
from engine_host.protocol.engines import Engine, EngineState, Readings
from engine_host.protocol.host import Gpu, GpuHolder
from engine_host.protocol.launch.plans import EngineKind
from engine_host.protocol.telemetry import MemoryDevice
from tests.plan_samples import engine_of, plain_plan

GIB = 1 << 30


def engine(kind: str, **buffers: int) -> Engine:
    made = engine_of(plain_plan(), EngineState.READY)
    named = {name.replace("_", " "): size for name, size in buffers.items()}
    readings = Readings(at=0.0, memory=8 * GIB, memory_of_files=5 * GIB)
    return made.model_copy(update={"engine": kind, "pid": 10, "buffers": named, "readings": readings})


def card(*holders: tuple[int, str, int | None]) -> Gpu:
    return Gpu(
        index=1,
        uuid="GPU-b",
        name="Made-up 24",
        memory_total=24 * GIB,
        memory_used=20 * GIB,
        holders=tuple(GpuHolder(pid=pid, name=name, memory=size) for pid, name, size in holders),
    )


def told(device: MemoryDevice) -> list[tuple[str, int | None, dict[str, int | None]]]:
    return [
        (user.name, user.memory, {part.name: part.memory for part in user.parts}) for user in device.users
    ]


def test_an_engine_is_one_user_with_its_parts_and_others_are_named() -> None:
    ours = engine(EngineKind.VLLM, model=8 * GIB, KV=4 * GIB)
    gpu = card((10, "python", 1 * GIB), (11, "python", 13 * GIB), (99, "<b>game</b>", 3 * GIB))
    device = gpu_device(gpu, {10: ours, 11: ours}, ("GPU-a", "GPU-b"))
    assert told(device) == [
        (
            ours.name,
            14 * GIB,
            {"weights": 8 * GIB, "KV cache": 4 * GIB, "CUDA graphs": None, "everything else": 2 * GIB},
        ),
        ("<b>game</b>", 3 * GIB, {}),
    ]
    assert device.users[0].parts[-1].source == "what is left, CUDA graphs with it"
    assert device.rest == 3 * GIB


def test_who_does_not_tell_leaves_the_rest_open() -> None:
    ours = engine(EngineKind.VLLM, model=8 * GIB)
    device = gpu_device(card((10, "python", None), (99, "game", 3 * GIB)), {10: ours}, ())
    assert device.rest is None
    assert told(device)[1][2]["everything else"] is None


def test_llama_cpp_counts_the_gpus_that_it_was_given() -> None:
    on_gpus = {"CUDA0_model": 3 * GIB, "draft_CUDA0_KV": GIB, "CUDA1_model": 5 * GIB}
    ours = engine(EngineKind.LLAMA_CPP, **on_gpus, CPU_model=6 * GIB)
    both = ours.model_copy(update={"plan": ours.plan.model_copy(update={"gpus": ("GPU-b",)})})
    device = gpu_device(card((10, "llama-server", 5 * GIB)), {10: both}, ("GPU-a", "GPU-b"))
    assert told(device)[0][2] == {"weights": 3 * GIB, "KV cache": GIB, "everything else": GIB}
    # In RAM are the rest of its buffers; pages of its file count as its own, and for the system as free.
    ram = ram_device(32 * GIB, 10 * GIB, [ours])
    assert told(ram)[0][2] == {"weights": 6 * GIB, "everything else": 2 * GIB}
    assert ram.rest == 7 * GIB


def test_vllm_on_the_cpu_has_its_parts_in_ram_and_one_on_a_gpu_has_none_there() -> None:
    ours = engine(EngineKind.VLLM, checkpoint=2 * GIB, KV=4 * GIB)
    (user,) = ram_device(32 * GIB, 10 * GIB, [ours]).users
    assert {part.name: part.memory for part in user.parts} == {
        "weights": 2 * GIB,
        "KV cache": 4 * GIB,
        "everything else": 2 * GIB,
    }
    assert "checkpoint" in user.parts[0].source
    (other,) = ram_device(32 * GIB, 10 * GIB, [engine(EngineKind.VLLM, model=2 * GIB, KV=4 * GIB)]).users
    assert other.parts == ()
