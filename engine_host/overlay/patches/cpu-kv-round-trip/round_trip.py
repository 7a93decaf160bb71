"""The arithmetic of a quantised cache in plain torch: what comes back of what was stored.

The same as in kernels/store.py and kernels/reference.py of turboquant-grouped-attention, which stay the
measure: tests/kernels/round_trip_interpreted.py compares both.
"""

import torch

# Levels of a 4-bit key and their unit: kernels/levels.py.
LEVELS = (1.125, 3.25, 5.5, 8.0, 11.0, 14.0, 18.0, 24.0)
UNITS = 8.73
PRESETS = ("fp8", "k8v4", "4bit_nc")
# The largest number of e4m3.
_LARGEST = 448.0
# The smallest normal number of fp16.
_SMALLEST = 6.103515625e-05


def rounded(keys, values, preset):
    """Keys and values [tokens, kv_heads, head_size] as they are read back; ValueError for another type."""
    if preset == "fp8":
        return _fp8(keys), _fp8(values)
    if preset == "k8v4":
        return _fp8(keys), _even_steps(values)
    if preset == "4bit_nc":
        return _levels(keys), _even_steps(values)
    raise ValueError(f"{preset} is none of {', '.join(PRESETS)}")


def _fp8(rows):
    return rows.float().clamp(-_LARGEST, _LARGEST).to(torch.float8_e4m3fn).to(rows.dtype)


def _even_steps(rows):
    """Sixteen even steps between a row's smallest and largest number, step and centre in fp16."""
    whole = rows.float()
    smallest, largest = whole.amin(-1, keepdim=True), whole.amax(-1, keepdim=True)
    step = ((largest - smallest) / 15.0).clamp(min=_SMALLEST).half().float()
    centre = (smallest + 8.0 * step).half().float()
    nibbles = ((whole - centre) / step + 8.5).clamp(0.0, 15.0).floor()
    return ((nibbles - 8.0) * step + centre).half().to(rows.dtype)


def _levels(rows):
    """Sixteen levels of the rotated row; the norm undoes its change of length."""
    whole = rows.float()
    size = whole.shape[-1]
    length = whole.square().sum(-1, keepdim=True).sqrt()
    turned = _rotated(whole) * (UNITS * size**0.5 / length.clamp(min=1e-30))
    levels = torch.tensor(LEVELS)
    bounds = (levels[1:] + levels[:-1]) / 2
    magnitude = levels[torch.bucketize(turned.abs(), bounds)]
    norm = (length / magnitude.square().sum(-1, keepdim=True).sqrt()).half().float()
    return _rotated(torch.where(turned < 0, -magnitude, magnitude) * norm).to(rows.dtype)


def _rotated(rows):
    """The Walsh-Hadamard rotation, orthonormal and its own inverse."""
    size = rows.shape[-1]
    found, distance = rows, 1
    while distance < size:
        pairs = found.reshape(*rows.shape[:-1], size // (2 * distance), 2, distance)
        first, second = pairs.unbind(-2)
        found = torch.stack([first + second, first - second], -2).reshape(rows.shape)
        distance *= 2
    return found / size**0.5
