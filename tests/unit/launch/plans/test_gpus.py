"""Starts on several GPUs: which they get, and what they find there beside engines that run."""

from dataclasses import replace
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.launch.preflight.machine import Holder
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.plans import LaunchPlan, LaunchRequest, Layer
from tests.plan_samples import engine_of, vllm_plan
from tests.unit.asynchronous import run
from tests.unit.launch.models import server
from tests.unit.launch.plans.test_preset import PresetDesk, cuda, llama, settings  # noqa: F401
from tests.unit.launch.vllm_desk import GIB, gpu

UUIDS = ("GPU-00000000-aaaa", "GPU-11111111-bbbb", "GPU-22222222-cccc")


def card(index: int, used: int = 0, total: int = 140) -> Gpu:
    return gpu(index, used * GIB, total * GIB).model_copy(update={"uuid": UUIDS[index]})


def plan(desk: PresetDesk, **fields: Any) -> LaunchPlan:
    return run(desk.planner.plan(LaunchRequest.model_validate({"model": "m"} | fields)))


def refused(desk: PresetDesk, **fields: Any) -> HostError:
    with pytest.raises(HostError) as raised:
        plan(desk, **fields)
    assert raised.value.reason is Reason.SETTING_INVALID
    return raised.value


def test_vllm_gets_the_freest_or_those_that_are_named(cuda: PresetDesk) -> None:  # noqa: F811
    cuda.gpus = (card(0, 60), card(1), card(2, 30))
    made = plan(cuda)
    assert (made.gpus, made.gpus_named) == ((UUIDS[1],), False)
    assert made.environment["CUDA_VISIBLE_DEVICES"] == UUIDS[1]
    assert [need.device for need in made.needs] == [UUIDS[1]]
    made = plan(cuda, gpus=("0", UUIDS[2]), overrides=Overrides(gpu_memory=0.5))
    assert made.environment["CUDA_VISIBLE_DEVICES"] == f"{UUIDS[0]},{UUIDS[2]}"
    parallel = settings(made)["tensor_parallel"]
    assert (parallel.value, parallel.layer, parallel.why) == (2, Layer.OVERRIDE, "as many as GPUs are named")
    assert [need.bytes for need in made.needs] == [70 * GIB, 70 * GIB]
    assert f"--gpu 0 --gpu {UUIDS[2]}" in made.command
    two = Overrides(tensor_parallel=2)
    assert "1 GPU(s) are named" in refused(cuda, gpus=("0",), overrides=two).problem.message
    assert "no GPU 7" in refused(cuda, gpus=("7",)).problem.message


def test_a_vllm_that_counts_its_gpus_gets_numbers(cuda: PresetDesk) -> None:  # noqa: F811
    cuda.desk.venv = replace(cuda.desk.venv, id="0.26.0-cuda", version="0.26.0")  # type: ignore[union-attr]
    cuda.gpus = (card(0, 60), card(1))
    made = plan(cuda)
    assert (made.gpus, made.environment["CUDA_VISIBLE_DEVICES"]) == ((UUIDS[1],), "1")
    cuda.gpus = (card(1).model_copy(update={"index": 0}), card(0, 60).model_copy(update={"index": 1}))
    assert cuda.stale(made).problem.evidence["changed"] == ["the GPUs"], "the numbers mean others now"


def test_llama_cpp_gets_as_few_as_hold_it(llama: PresetDesk) -> None:  # noqa: F811
    llama.gpus = (card(0, 20, 24), card(1, 0, 24), card(2, 1, 24))
    assert "no GPU of NVIDIA's" in refused(llama, gpus=("0",)).problem.message
    llama.desk.server = {"devices": ("CUDA0", "CUDA1", "CUDA2")}  # type: ignore[union-attr]
    made = plan(llama)
    assert (made.gpus, made.environment["CUDA_VISIBLE_DEVICES"]) == ((UUIDS[1],), UUIDS[1])
    assert [need.device for need in made.needs] == [UUIDS[1]]
    made = plan(llama, gpus=("0", "1"))
    assert (made.gpus, made.gpus_named) == (UUIDS[:2], True)
    llama.desk.server["flags"] = frozenset({*server().flags, "--tensor-split"})  # type: ignore[union-attr]
    split = Overrides(extra_arguments=("--tensor-split", "1,1,1"))
    made = plan(llama, overrides=split)
    assert made.gpus == UUIDS, "it counts on all of them"
    assert "CUDA_VISIBLE_DEVICES" not in made.environment


def running(name: str, size: int, device: str, state: EngineState = EngineState.READY) -> Engine:
    made = vllm_plan(name=name, id=f"plan-{name}", needs=[{"device": device, "bytes": size * GIB}])
    return engine_of(made, state, id=f"engine-{name}", pid=7)


def test_there_is_no_room_beside_a_vllm_that_has_it_all(cuda: PresetDesk) -> None:  # noqa: F811
    desk = cuda.desk
    cuda.gpus = (card(0, 139),)
    desk.running = [running("large", 139, UUIDS[0])]
    cuda.state = cuda.state.__class__(holders=(Holder(0, 7, "large", 139 * GIB, "engine-large"),))
    made = plan(cuda)
    errors = [one for one in made.findings if one.severity == "error"]
    assert [one.id for one in errors] == ["no_room_beside"]
    assert "GPU 0 (H200)" in errors[0].message
    assert errors[0].fix is not None
    assert errors[0].fix.command == "sndr run m --instead-of large"
    assert set(errors[0].evidence["missing_by_device"]) == {UUIDS[0]}
    again = plan(cuda, instead_of=("large",))
    assert (again.startable, [one.name for one in again.instead_of]) == (True, ["large"])
    assert settings(again)["gpu_memory"].value == 0.9
    # On another GPU there is room, and it is found.
    cuda.gpus = (card(0, 139), card(1))
    assert (plan(cuda).startable, plan(cuda).gpus) == (True, (UUIDS[1],))


def test_the_share_beside_an_engine_that_loads_is_what_it_leaves(cuda: PresetDesk) -> None:  # noqa: F811
    cuda.gpus = (card(0, 2),)
    cuda.desk.running = [running("half", 70, UUIDS[0], EngineState.STARTING)]
    made = plan(cuda)
    assert made.startable
    assert settings(made)["gpu_memory"].value == pytest.approx(0.46, abs=0.01)
