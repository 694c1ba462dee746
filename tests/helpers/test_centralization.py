"""Gradient centralization."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from torch import Tensor

from zoo import helpers

from .strategies import tensors


@given(tensors(1))
def test_every_output_unit_has_mean_zero(xs: list[Tensor]) -> None:
    (grad,) = xs
    result = helpers.centralize(grad)
    if grad.ndim < 2:
        assert torch.equal(result, grad)
        return
    for unit, centered in zip(grad, result, strict=True):
        torch.testing.assert_close(centered, unit - unit.mean())


@pytest.mark.parametrize("shape", [(), (4,)])
def test_scales_and_biases_are_left_alone(shape: tuple[int, ...]) -> None:
    grad = torch.ones(shape)
    assert torch.equal(helpers.centralize(grad), grad)
