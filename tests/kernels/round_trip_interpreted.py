"""The round trip in plain torch, against the cache that the kernels write in the interpreter.

Run by the patch's own test with the vLLM environment's Python, both patches' folders on its path.
"""

from typing import Any

import pytest
import torch
from kernels import reference
from kernels.layout import CacheLayout
from kernels.levels import LEVELS, UNITS
from kernels.store import store
from round_trip import LEVELS as OWN_LEVELS
from round_trip import UNITS as OWN_UNITS
from round_trip import rounded

CPU = torch.device("cpu")


def read_back(keys: Any, values: Any, preset: str) -> Any:
    """What the reference reads of what the kernel stored."""
    tokens, kv_heads, head_size = keys.shape
    layout = CacheLayout(preset, head_size, 16)
    blocks = -(-tokens // 16)
    cache = torch.full(layout.cache_shape(blocks, kv_heads), 255, dtype=torch.uint8)
    # By bytes: the interpreter's own conversion to fp8 is wrong below 2 ** -6.
    store(keys, values, cache, torch.arange(tokens), layout, native_fp8=False)
    return reference.read_tokens(cache, torch.arange(blocks, dtype=torch.int32), tokens, layout)


@pytest.mark.parametrize("head_size", [64, 128])
@pytest.mark.parametrize("preset", ["k8v4", "4bit_nc"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 300.0])
def test_what_is_read_back_is_what_the_kernels_store(preset: str, head_size: int, scale: float) -> None:
    torch.manual_seed(0)
    keys = (torch.randn(40, 2, head_size) * scale).bfloat16()
    values = (torch.randn(40, 2, head_size) * scale).bfloat16()
    values[3] = 0.25
    wanted_keys, wanted_values = read_back(keys, values, preset)
    # In fp32, so that no last rounding to bf16 hides anything.
    found_keys, found_values = rounded(keys.float(), values.float(), preset)
    if preset == "k8v4":
        assert torch.equal(found_keys.double(), wanted_keys)
    else:
        assert float((found_keys - wanted_keys).norm() / wanted_keys.norm()) < 1e-3
    # The reference does not round to fp16 in the end.
    assert float((found_values - wanted_values).norm() / wanted_values.norm()) < 1e-3


def test_the_levels_are_those_of_the_kernels() -> None:
    assert (OWN_LEVELS, OWN_UNITS) == (LEVELS, UNITS)
