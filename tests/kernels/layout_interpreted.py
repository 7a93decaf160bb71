"""The cache's byte arithmetic."""

import pytest
from kernels.layout import BLOCK_SIZES, HEAD_SIZES, PRESETS, CacheLayout


@pytest.mark.parametrize(
    ("preset", "head_size", "token_bytes"),
    [("k8v4", 128, 196), ("k8v4", 256, 388), ("4bit_nc", 128, 134), ("4bit_nc", 256, 262)],
)
def test_a_token_takes_what_it_takes_in_vllm(preset: str, head_size: int, token_bytes: int) -> None:
    assert CacheLayout(preset, head_size, 16).token_bytes == token_bytes


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("head_size", HEAD_SIZES)
@pytest.mark.parametrize("block_size", BLOCK_SIZES)
def test_parts_fill_a_page_and_start_where_wide_loads_may(
    preset: str, head_size: int, block_size: int
) -> None:
    layout = CacheLayout(preset, head_size, block_size)
    assert layout.norm_offset + block_size * layout.norm_bytes == layout.page_bytes
    for start in (layout.value_offset, layout.scale_offset, layout.norm_offset, layout.page_bytes):
        assert start % 16 == 0
    assert layout.cache_shape(3, 2) == (3, 2, layout.page_bytes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("k4v4", 128, 16), "preset k4v4 is none of k8v4, 4bit_nc"),
        (("k8v4", 96, 16), "head size 96 is none of 64, 128, 256"),
        (("k8v4", 128, 8), "block size 8 is none of"),
    ],
)
def test_other_shapes_are_refused(arguments: tuple[str, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CacheLayout(*arguments)
