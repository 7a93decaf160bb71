"""The reference for the kernels, in float64 and without cleverness."""

import torch

from .layout import CacheLayout
from .levels import LEVELS


def hadamard(size: int, device: torch.device) -> torch.Tensor:
    """The orthonormal Walsh-Hadamard matrix [size, size], float64, by Sylvester's construction."""
    matrix = torch.ones(1, 1, dtype=torch.float64, device=device)
    while matrix.shape[0] < size:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)], 0)
    return matrix / size**0.5


def read_tokens(
    cache: torch.Tensor, blocks: torch.Tensor, length: int, layout: CacheLayout
) -> tuple[torch.Tensor, torch.Tensor]:
    """The keys and values [length, kv_heads, head_size] that a request's blocks hold, as float64.

    4-bit keys come back as they were given, the rotation undone.
    """
    used = -(-length // layout.block_size)
    pages = cache[blocks[:used].long()]
    kv_heads = cache.shape[1]

    def part(start: int, size: int) -> torch.Tensor:
        end = start + layout.block_size * size
        return pages[:, :, start:end].reshape(used, kv_heads, layout.block_size, size)

    def by_token(rows: torch.Tensor) -> torch.Tensor:
        return rows.transpose(1, 2).reshape(used * layout.block_size, kv_heads, rows.shape[-1])[:length]

    scales = part(layout.scale_offset, 4).contiguous().view(torch.float16).double()
    packed = part(layout.value_offset, layout.value_bytes)
    nibbles = torch.cat([packed & 15, packed >> 4], -1).double()
    values = by_token((nibbles - 8) * scales[..., :1] + scales[..., 1:])
    rows = part(0, layout.key_bytes)
    if layout.fp8_keys:
        return by_token(rows.contiguous().view(torch.float8_e4m3fn).double()), values
    norms = part(layout.norm_offset, 2).contiguous().view(torch.float16).double()
    codes = torch.cat([rows & 15, rows >> 4], -1).long()
    magnitudes = torch.tensor(LEVELS, dtype=torch.float64, device=cache.device)[codes & 7]
    rotated = torch.where(codes >= 8, -magnitudes, magnitudes) * norms
    return by_token(rotated) @ hadamard(layout.head_size, cache.device), values


def attend(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, length: int, scale: float
) -> torch.Tensor:
    """Causal attention of one request's last rows: [rows, heads, head_size] float64.

    Row r of R sees the first length - R + 1 + r tokens; a row that sees none is zero.
    """
    rows, heads, head_size = query.shape
    kv_heads = keys.shape[1]
    grouped = query.double().view(rows, kv_heads, heads // kv_heads, head_size)
    scores = torch.einsum("rhgd,thd->hgrt", grouped, keys) * scale
    seen = length - rows + 1 + torch.arange(rows, device=query.device)
    hidden = torch.arange(length, device=query.device)[None, :] >= seen[:, None]
    weights = torch.nan_to_num(scores.masked_fill(hidden, -torch.inf).softmax(-1))
    return torch.einsum("hgrt,thd->rhgd", weights, values).reshape(rows, heads, head_size)
