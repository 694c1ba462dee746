"""Updates that stay apart until the parameter is written."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from zoo import helpers

from .strategies import tensors


@given(tensors(3), st.floats(-2, 2), st.booleans(), st.booleans())
def test_subtracting_apart_is_subtracting_the_product(
    xs: list[Tensor], scale: float, as_tensor: bool, divided: bool
) -> None:
    param, numerator, denominator = xs[0], xs[1], xs[2].abs() + 0.5
    number = torch.tensor(scale, dtype=torch.float64) if as_tensor else scale
    update = helpers.scaled(numerator, number, over=denominator if divided else None)
    expected = scale * numerator / denominator if divided else scale * numerator
    torch.testing.assert_close(update.tensor(), expected)
    before = param.clone()
    assert update.subtract_from_(param) is param
    torch.testing.assert_close(param, before - expected)


@pytest.mark.parametrize("scale", [0.3, torch.tensor(0.3, dtype=torch.float64)], ids=["float", "tensor"])
def test_the_parameters_dtype_is_kept(scale: helpers.Scalar) -> None:
    for shape in [(), (3,)]:
        param = torch.ones(shape)
        update = helpers.scaled(torch.ones(shape), scale, over=torch.ones(shape))
        update.subtract_from_(param)
        assert param.dtype == update.tensor().dtype == torch.float32
        torch.testing.assert_close(param, torch.full(shape, 0.7))


@given(tensors(1), st.floats(1e-3, 2), st.floats(0, 1))
def test_root_plus_is_adams_denominator(xs: list[Tensor], scale: float, eps: float) -> None:
    avg_sq = xs[0].abs()
    torch.testing.assert_close(helpers.root_plus(avg_sq, scale, eps), avg_sq.sqrt() / scale + eps)
