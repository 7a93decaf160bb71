"""The needs of a preset in words, which every list and message takes from one place."""

import pytest

from engine_host.protocol.catalog import Needs


@pytest.mark.parametrize(
    ("needs", "short", "devices"),
    [
        (Needs(gpus=0), "CPU", "a CPU"),
        (Needs(gpus=1), "1", "a GPU"),
        (Needs(gpus=1, vram_gib=24), "1 × 24 GiB", "a GPU of 24 GiB"),
        (Needs(gpus=2, vram_gib=12.5), "2 × 12.5 GiB", "2 GPUs of 12.5 GiB"),
    ],
)
def test_devices_in_a_column_and_in_a_sentence(needs: Needs, short: str, devices: str) -> None:
    assert (needs.short, needs.devices, needs.words) == (short, devices, devices)


def test_everything_in_a_line() -> None:
    needs = Needs(gpus=2, vram_gib=24, sm="8.9", formats=("fp8",), ram_gib=32, nvlink=True)
    said = "2 GPUs of 24 GiB, compute capability 8.9, fp8 in its tensor cores, 32 GiB of RAM, NVLink"
    assert needs.words == said
