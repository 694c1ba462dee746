"""State tensors, and one look over many gradients."""

from __future__ import annotations

import math

import pytest
import torch

from zoo import helpers


def test_zeros_keep_shape_dtype_and_memory_order() -> None:
    param = torch.ones(2, 3, 4, 4, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    state = helpers.zeros_like(param)
    assert not state.any() and state.dtype == param.dtype and state.stride() == param.stride()


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
        (torch.complex64, torch.float32),
        (torch.complex128, torch.float64),
    ],
    ids=str,
)
def test_running_numbers_are_real_and_at_least_float32(dtype: torch.dtype, expected: torch.dtype) -> None:
    number = helpers.zero_scalar(torch.ones(3, dtype=dtype))
    assert number.shape == () and number.dtype == expected and number.item() == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_one_bad_element_anywhere_is_seen(bad: float) -> None:
    clean = [torch.ones(3), torch.zeros(0), torch.ones((), dtype=torch.bfloat16), torch.ones(2).to_sparse()]
    assert helpers.all_finite(clean)
    for index in (0, 2, 3):
        tensors = list(clean)
        tensors[index] = (tensors[index].to_dense() * bad) if index != 3 else torch.tensor([bad, 1.0]).to_sparse()
        assert not helpers.all_finite(tensors)
