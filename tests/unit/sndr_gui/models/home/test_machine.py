"""The parts of this machine in words: processes on a GPU, and engines that are installed or not."""

from engine_host.protocol.host import Gpu, GpuHolder
from sndr_gui.models.home.machine import engine_parts, gpu_part
from tests.views.samples import host as samples

GIB = 2**30


def gpu(*holders: GpuHolder) -> Gpu:
    return Gpu(
        index=1,
        uuid="u",
        name="NVIDIA GeForce RTX 3090",
        memory_total=24 * GIB,
        memory_used=6 * GIB,
        holders=holders,
    )


def test_a_gpu_names_who_holds_it() -> None:
    part = gpu_part(gpu(GpuHolder(pid=7, name="Xorg", memory=GIB), GpuHolder(pid=8)), None, ())
    assert (part.name, part.value, part.share) == ("RTX 3090 #1", "6 / 24 GiB", 0.25)
    assert "18 GiB free of 24 GiB" in part.hint
    assert "Xorg (7): 1 GiB" in part.hint
    assert "a process (8): —" in part.hint, "what the driver does not tell is no 0"


def test_the_newest_measurement_wins_and_engines_of_ours_are_named() -> None:
    part = gpu_part(gpu(), 12 * GIB, ("demo", "qwen"))
    assert part.share == 0.5
    assert "does not report which process uses it" in part.hint
    assert "Computes here: demo, qwen." in part.hint


def test_engines_that_are_not_here_say_so() -> None:
    llama, vllm = engine_parts(samples.servers(), samples.installations(present=False))
    assert llama.value == "11549 (prebuilt)"
    assert vllm.value == "not installed"
    assert engine_parts(samples.servers(), samples.installations())[1].value == "0.32.0 · CPU"
    assert engine_parts(None, None) == ()
