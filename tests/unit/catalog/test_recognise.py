"""The GPUs of a machine as the catalogue knows them."""

import pytest

from engine_host.catalog.recognise import recognise
from engine_host.protocol.host import Gpu
from engine_host.protocol.presets import HardwareHere
from tests.shipped_catalog import shipped

CATALOG = shipped()


def gpus(*kinds: tuple[str, int]) -> list[Gpu]:
    return [
        Gpu(index=index, uuid=f"GPU-{index}", name=name, memory_total=mib << 20, memory_used=0)
        for index, (name, mib) in enumerate(kinds)
    ]


@pytest.mark.parametrize(
    ("name", "mib", "hardware"),
    [
        ("NVIDIA GeForce RTX 3090", 24576, "rtx-3090"),
        ("NVIDIA GeForce RTX 4090", 24564, "rtx-4090"),
        ("NVIDIA GeForce RTX 3060", 12288, "rtx-3060-12gb"),
        ("NVIDIA GeForce RTX 3060", 8192, None),
        ("NVIDIA GeForce RTX 4060 Ti", 8188, "rtx-4060-ti-8gb"),
        ("NVIDIA GeForce RTX 4060 Ti", 16380, "rtx-4060-ti-16gb"),
        ("NVIDIA L4", 23034, "l4"),
        ("NVIDIA A100-SXM4-40GB", 40960, "a100-40gb"),
        ("NVIDIA A100-SXM4-80GB", 81920, "a100-80gb"),
        ("NVIDIA H200", 143771, "h200"),
        ("Something Else", 24576, None),
    ],
)
def test_a_card_is_known_by_its_name_and_memory(name: str, mib: int, hardware: str | None) -> None:
    assert recognise(CATALOG, gpus((name, mib))) == HardwareHere(hardware=hardware, name=name, count=1)


def test_of_several_kinds_the_one_with_the_most_memory_in_all() -> None:
    cards = gpus(*[("NVIDIA GeForce RTX 3090", 24576)] * 3, ("NVIDIA RTX A6000", 49140))
    found = recognise(CATALOG, cards)
    assert found is not None
    assert (found.hardware, found.count) == ("rtx-3090", 3)


def test_no_gpu_and_more_than_eight() -> None:
    assert recognise(CATALOG, []) is None
    found = recognise(CATALOG, gpus(*[("NVIDIA H200", 143771)] * 16))
    assert found is not None
    assert found.count == 8
