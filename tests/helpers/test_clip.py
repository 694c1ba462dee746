"""Clipping one tensor: by unit-wise ratio, by norm, by value."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from zoo import helpers

from .strategies import tensors

BOUNDS = st.floats(1e-4, 10)


@given(tensors(1), BOUNDS)
def test_the_norm_is_at_most_the_bound_and_the_direction_is_kept(xs: list[Tensor], bound: float) -> None:
    (grad,) = xs
    clipped = helpers.clip_by_norm(grad, bound)
    norm = grad.norm()
    torch.testing.assert_close(clipped, grad * min(1.0, bound / norm.item()) if norm > 0 else grad)
    if norm <= bound:
        assert torch.equal(clipped, grad), "left as it is"


def test_clip_by_norm_is_torchs_but_for_its_epsilon() -> None:
    param = torch.nn.Parameter(torch.zeros(6, dtype=torch.float64))
    param.grad = torch.randn(6, dtype=torch.float64) * 10
    expected = helpers.clip_by_norm(param.grad, 0.5)
    torch.nn.utils.clip_grad_norm_([param], 0.5)
    torch.testing.assert_close(param.grad, expected, rtol=1e-6, atol=0)


@given(tensors(1), BOUNDS)
def test_clip_by_value_is_torchs(xs: list[Tensor], bound: float) -> None:
    param = torch.nn.Parameter(torch.zeros_like(xs[0]))
    param.grad = xs[0].clone()
    torch.nn.utils.clip_grad_value_([param], bound)
    assert torch.equal(helpers.clip_by_value(xs[0], bound), param.grad)


@pytest.mark.parametrize(
    ("shape", "dims"),
    [((), None), ((5,), None), ((3, 4), (1,)), ((2, 3, 2), (1, 2)), ((4, 3, 2, 2), (1, 2, 3))],
)
def test_units_are_the_first_dimension(shape: tuple[int, ...], dims: tuple[int, ...] | None) -> None:
    x = torch.randn(shape, dtype=torch.float64)
    expected = x.square().sum().sqrt() if dims is None else x.square().sum(dims, keepdim=True).sqrt()
    torch.testing.assert_close(helpers.unit_norm(x), expected)


@given(tensors(2), BOUNDS)
def test_no_units_gradient_is_larger_than_its_share_of_the_unit(xs: list[Tensor], clip: float) -> None:
    grad, param = xs
    clipped = helpers.adaptive_clip(grad, param, clip)
    bound = helpers.unit_norm(param).clamp(min=1e-3) * clip
    norm = helpers.unit_norm(grad)
    torch.testing.assert_close(clipped, torch.where(norm > bound, grad * bound / norm.clamp(min=1e-300), grad))
    assert (helpers.unit_norm(clipped) <= bound * (1 + 1e-9)).all()


def test_units_that_are_zero_can_still_move() -> None:
    clipped = helpers.adaptive_clip(torch.ones(2, 4), torch.zeros(2, 4), 0.1)
    torch.testing.assert_close(helpers.unit_norm(clipped), torch.full((2, 1), 1e-4))


def test_the_ratio_is_exactly_one_up_to_the_bound() -> None:
    sizes = torch.tensor([0.0, 0.3, 0.7, 1.4])
    assert helpers.clip_ratio(sizes, 0.7).tolist() == [1.0, 1.0, 1.0, 0.5]
    assert helpers.clip_ratio(sizes, torch.tensor(0.0)).tolist() == [1.0, 0.0, 0.0, 0.0]
