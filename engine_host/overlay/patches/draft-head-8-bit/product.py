"""Products of a few rows with a large matrix of 8-bit numbers: each byte is read once, none converted."""

import torch
import triton
import triton.language as tl

# Rows of a product: with more, reading the matrix is no longer what takes the time.
MOST_ROWS = 64
# Columns of the matrix are read by so many.
STEP = 128
# A row becomes two whole numbers of 8 bits, high * 128 + low: 15 bits of its largest number.
LARGEST = tl.constexpr(127.0 * 128.0)


@triton.jit
def _terms_kernel(
    rows, terms, steps, row_stride, columns, padded_rows: tl.constexpr, padded_columns: tl.constexpr
):
    """One row of activations as high and low terms (int8), and the step (fp32) that they count."""
    row = tl.program_id(0)
    column = tl.arange(0, padded_columns)
    inside = column < columns
    numbers = tl.load(rows + row.to(tl.int64) * row_stride + column, mask=inside, other=0.0).to(tl.float32)
    largest = tl.max(tl.abs(numbers), 0)
    scaled = numbers * (LARGEST / tl.where(largest > 0.0, largest, 1.0))
    # Adding 1.5 * 2 ** 23 rounds to whole numbers.
    whole = (scaled + 12582912.0) - 12582912.0
    high = tl.floor(whole * 0.0078125 + 0.5)
    tl.store(terms + row * columns + column, high.to(tl.int8), mask=inside)
    low = whole - high * 128.0
    tl.store(terms + (padded_rows + row) * columns + column, low.to(tl.int8), mask=inside)
    tl.store(steps + row, largest / LARGEST)


@triton.jit(do_not_specialize=["rows"])
def _product_kernel(
    matrix,
    matrix_steps,
    terms,
    steps,
    out,
    outputs,
    rows,
    columns: tl.constexpr,
    tile: tl.constexpr,
    step: tl.constexpr,
    padded_rows: tl.constexpr,
    stages: tl.constexpr,
):
    """`tile` outputs of every row: sums of whole numbers are exact, so rows do not depend on one another."""
    output = tl.program_id(0) * tile + tl.arange(0, tile)
    held = tl.minimum(output, outputs - 1)
    column = tl.arange(0, step)
    row = tl.arange(0, 2 * padded_rows)
    weights = matrix + held.to(tl.int64)[:, None] * columns + column[None, :]
    numbers = terms + row[None, :] * columns + column[:, None]
    sums = tl.zeros([tile, 2 * padded_rows], tl.int32)
    for at in tl.range(0, columns, step, num_stages=stages):
        sums = tl.dot(tl.load(weights + at), tl.load(numbers + at), sums, out_dtype=tl.int32)
    high, low = tl.split(tl.permute(tl.reshape(sums, [tile, 2, padded_rows]), [0, 2, 1]))
    row = tl.arange(0, padded_rows)
    both = high.to(tl.float32) * 128.0 + low.to(tl.float32)
    answer = both * tl.load(matrix_steps + held)[:, None] * tl.load(steps + row)[None, :]
    place = out + row[None, :].to(tl.int64) * outputs + output[:, None]
    tl.store(place, answer.to(out.dtype.element_ty), mask=(output < outputs)[:, None] & (row < rows)[None, :])


def quantised(matrix):
    """A matrix (outputs, columns) as int8, and each output's step (fp32): its largest number is 127."""
    numbers = torch.empty(matrix.shape, dtype=torch.int8, device=matrix.device)
    steps = torch.empty(matrix.shape[0], dtype=torch.float32, device=matrix.device)
    # A part at a time: in fp32 a whole output matrix would need twice its own memory.
    for first in range(0, matrix.shape[0], 4096):
        part = matrix[first : first + 4096].float()
        step = part.abs().amax(1).clamp(min=1e-30) / 127.0
        numbers[first : first + 4096] = (part / step[:, None]).round().to(torch.int8)
        steps[first : first + 4096] = step
    return numbers, steps


def product(rows, matrix, matrix_steps):
    """rows (n, columns) of bf16 or fp16 times a quantised matrix: (n, outputs) in the rows' type.

    n is 1 to 64, columns a multiple of 128. Raises ValueError otherwise.
    """
    count, columns = rows.shape
    outputs = matrix.shape[0]
    if not 0 < count <= MOST_ROWS or columns != matrix.shape[1] or columns % STEP:
        raise ValueError(f"{count} rows of {columns} columns, a matrix of {tuple(matrix.shape)}")
    if rows.stride(1) != 1:
        rows = rows.contiguous()
    # Two terms of eight rows are what the tensor cores take at least.
    padded = max(8, triton.next_power_of_2(count))
    terms = torch.empty(2 * padded, columns, dtype=torch.int8, device=rows.device)
    steps = torch.empty(padded, dtype=torch.float32, device=rows.device)
    out = torch.empty(count, outputs, dtype=rows.dtype, device=rows.device)
    _terms_kernel[(count,)](
        rows, terms, steps, rows.stride(0), columns, padded, triton.next_power_of_2(columns), num_warps=8
    )
    # The fastest of twelve on an H200 (docs/kernels.md); all fit the 99 KB of shared memory that the smallest
    # of these GPUs have.
    wide = padded <= 16 and columns % (2 * STEP) == 0
    step, stages = (2 * STEP, 3) if wide else (STEP, 4)
    _product_kernel[(triton.cdiv(outputs, 64),)](
        *(matrix, matrix_steps, terms, steps, out, outputs, count, columns, 64, step, padded, stages),
        num_warps=4,
    )
    return out
