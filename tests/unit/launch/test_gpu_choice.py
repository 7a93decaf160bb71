"""GPUs by UUID, number or name, or the freest that suffice."""

from collections.abc import Sequence

import pytest

from engine_host.core.errors import HostError
from engine_host.launch.gpu_choice import (
    freest_that_suffice,
    named_gpus,
    refuse_gpus,
    visible_devices,
)
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu

GIB = 1 << 30


def gpu(index: int, used: int = 0, name: str = "NVIDIA H200", uuid: str = "") -> Gpu:
    known = uuid or f"GPU-{index}abcdef-0000"
    return Gpu(index=index, uuid=known, name=name, memory_total=24 * GIB, memory_used=used * GIB)


CARDS = (gpu(0, 20), gpu(1, 4), gpu(2, 8, "NVIDIA GeForce RTX 3090"))


def numbers(gpus: Sequence[Gpu]) -> list[int]:
    return [one.index for one in gpus]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("1",), [1]),
        (("2", "0"), [0, 2]),
        (("GPU-1abcdef-0000",), [1]),
        (("gpu-1abcdef",), [1]),
        (("NVIDIA GeForce RTX 3090",), [2]),
        (("geforce rtx 3090", "1"), [1, 2]),
    ],
)
def test_gpus_are_named_as_the_driver_lists_them(words: tuple[str, ...], found: list[int]) -> None:
    assert numbers(named_gpus(words, CARDS)) == found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("3",), "no GPU 3"),
        (("GPU-ffffffff",), "no GPU GPU-ffffffff"),
        (("GPU-",), "no GPU GPU-"),
        (("\u202egpu; rm -rf ~",), "no GPU"),
        (("H200",), "2 GPUs are called H200"),
        (("1", "GPU-1abcdef-0000"), "GPU 1 is named twice"),
    ],
)
def test_what_is_no_single_gpu_is_refused_with_all_that_there_are(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(HostError) as raised:
        named_gpus(words, CARDS)
    assert raised.value.reason is Reason.SETTING_INVALID
    assert said in raised.value.problem.message
    assert "1: NVIDIA H200, GPU-1abcdef-0000" in raised.value.problem.cause


def test_an_engine_without_gpus_gets_none_named() -> None:
    refuse_gpus((), "vLLM 0.32.0 (cpu)")
    with pytest.raises(HostError, match="uses no GPU") as raised:
        refuse_gpus(("0",), "vLLM 0.32.0 (cpu)")
    assert raised.value.reason is Reason.SETTING_INVALID


@pytest.mark.parametrize(("needed", "found"), [(10, [1]), (20, [1]), (30, [1, 2]), (60, [0, 1, 2])])
def test_the_fewest_of_the_freest_are_taken(needed: int, found: list[int]) -> None:
    def suffice(gpus: Sequence[Gpu]) -> bool:
        free = min(one.memory_total - one.memory_used for one in gpus)
        return needed * GIB / len(gpus) <= free and needed < 50

    assert numbers(freest_that_suffice(CARDS, suffice)) == found


def test_cuda_is_shown_uuids_where_the_engine_knows_them() -> None:
    shown = {"CUDA_VISIBLE_DEVICES": "GPU-1abcdef-0000,GPU-2abcdef-0000", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert visible_devices(CARDS[1:]) == shown
    assert visible_devices(CARDS[1:], by_uuid=False)["CUDA_VISIBLE_DEVICES"] == "1,2"
    unknown = gpu(3, uuid="gpu-3")
    assert visible_devices([unknown])["CUDA_VISIBLE_DEVICES"] == "3", "its driver tells no UUID"
