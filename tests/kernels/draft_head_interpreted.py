"""Products with a matrix of 8 bits in Triton's interpreter, against float64 on the same numbers."""

from typing import Any

import pytest
import torch
from product import MOST_ROWS, product, quantised


def matrix(outputs: int, columns: int) -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    weights = torch.randn(outputs, columns)
    weights[outputs // 2] = 0.0
    # One number that is far from all others makes the steps of its output large, and of no other.
    weights[3, 5] = 100.0
    return weights, *quantised(weights)


def distance(found: Any, wanted: Any) -> float:
    return float((found.double() - wanted).norm() / wanted.norm())


@pytest.mark.parametrize("rows", [1, 3, 8, 9, 16, 17, 64])
@pytest.mark.parametrize("outputs", [64, 150])
def test_every_number_of_rows(rows: int, outputs: int) -> None:
    _, numbers, steps = matrix(outputs, 256)
    x = torch.randn(rows, 256)
    wanted = x.double() @ (numbers.double() * steps.double()[:, None]).T
    found = product(x, numbers, steps)
    assert found.shape == (rows, outputs)
    assert distance(found, wanted) < 2e-4, "activations have 15 bits of their largest number"


@pytest.mark.parametrize("columns", [128, 256, 384, 640])
def test_columns_in_steps_of_both_widths(columns: int) -> None:
    _, numbers, steps = matrix(70, columns)
    x = torch.randn(2, columns)
    wanted = x.double() @ (numbers.double() * steps.double()[:, None]).T
    assert distance(product(x, numbers, steps), wanted) < 2e-4


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_answers_are_in_the_type_of_the_rows(dtype: Any) -> None:
    _, numbers, steps = matrix(64, 128)
    found = product(torch.randn(4, 128).to(dtype), numbers, steps)
    assert found.dtype == dtype


def test_rows_with_gaps_zeros_and_far_numbers() -> None:
    _, numbers, steps = matrix(64, 128)
    x = torch.randn(6, 300)[:, 17:145]
    x[1] = 0.0
    x[2, 7] = 3e4
    assert x.stride() == (300, 1)
    found = product(x, numbers, steps)
    wanted = x.double() @ (numbers.double() * steps.double()[:, None]).T
    assert found[1].abs().max() == 0.0
    for row in (0, 2, 3, 4, 5):
        assert distance(found[row], wanted[row]) < 3e-4
    columns = product(x.T.contiguous().T, numbers, steps)
    assert (columns == found).all()


def test_a_row_does_not_depend_on_the_rows_beside_it() -> None:
    _, numbers, steps = matrix(64, 256)
    x = torch.randn(MOST_ROWS, 256)
    together = product(x, numbers, steps)
    for row in (0, 13, 63):
        assert (product(x[row : row + 1], numbers, steps)[0] == together[row]).all()


def test_a_copy_is_near_the_matrix() -> None:
    weights, numbers, steps = matrix(5000, 128)
    assert numbers.dtype == torch.int8
    assert numbers.abs().max() == 127
    ordinary = [row for row in range(5000) if row not in (3, 2500)]
    found = numbers.double() * steps.double()[:, None]
    assert distance(found[ordinary], weights.double()[ordinary]) < 8e-3
    assert found[2500].abs().max() == 0.0


@pytest.mark.parametrize(("rows", "columns"), [(0, 256), (65, 256), (1, 128), (1, 100)])
def test_what_it_was_not_written_for_is_refused(rows: int, columns: int) -> None:
    _, numbers, steps = matrix(64, 256 if columns != 100 else 100)
    with pytest.raises(ValueError, match=f"{rows} rows of {columns} columns"):
        product(torch.randn(rows, columns), numbers, steps)
