"""The factored second moment is exact for rank 1, Adafactor's otherwise, and safe at zero."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from zoo import helpers

from .strategies import MATRICES, tensors

STACKS = st.lists(st.integers(1, 4), min_size=2, max_size=4).map(tuple)


@given(MATRICES, st.integers(0, 100))
def test_it_agrees_with_the_full_moment_where_the_squares_have_rank_one(shape: tuple[int, int], seed: int) -> None:
    torch.manual_seed(seed)
    rows, columns = torch.rand(shape[0], 1).double() + 0.1, torch.rand(1, shape[1]).double() + 0.1
    row_var, col_var = helpers.factored_zeros(rows * columns)
    full = torch.zeros(shape, dtype=torch.float64)
    for scale in (1.0, 3.0, 0.5):
        grad = rows * columns * scale
        helpers.factored_ema_(row_var, col_var, grad, 0.1)
        helpers.ema_sq_(full, grad, 0.9)
    torch.testing.assert_close(helpers.factored_moment(row_var, col_var), full)
    torch.testing.assert_close(helpers.factored_rsqrt(row_var, col_var), full.rsqrt())


@given(tensors(1, STACKS), st.floats(0, 1))
def test_row_and_column_statistics_are_means_of_squares(xs: list[Tensor], weight: float) -> None:
    (grad,) = xs
    row_var, col_var = helpers.factored_zeros(grad)
    helpers.factored_ema_(row_var, col_var, grad, weight, eps=1e-3)
    torch.testing.assert_close(row_var, weight * (grad.square().mean(-1, keepdim=True) + 1e-3))
    torch.testing.assert_close(col_var, weight * (grad.square().mean(-2, keepdim=True) + 1e-3))


@given(tensors(1, STACKS))
def test_the_mean_of_the_moment_is_kept(xs: list[Tensor]) -> None:
    (grad,) = xs
    row_var, col_var = helpers.factored_zeros(grad)
    helpers.factored_ema_(row_var, col_var, grad, 1.0)
    moment = helpers.factored_moment(row_var, col_var)
    torch.testing.assert_close(moment.mean((-2, -1)), grad.square().mean((-2, -1)))


def test_a_stack_is_its_matrices_each_on_their_own() -> None:
    grads = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    row_var, col_var = helpers.factored_zeros(grads)
    helpers.factored_ema_(row_var, col_var, grads, 0.3)
    stacked = helpers.factored_rsqrt(row_var, col_var, 1e-3)
    for i in range(2):
        for j in range(3):
            row, col = helpers.factored_zeros(grads[i, j])
            helpers.factored_ema_(row, col, grads[i, j], 0.3)
            torch.testing.assert_close(stacked[i, j], helpers.factored_rsqrt(row, col, 1e-3))


def test_with_these_functions_a_rule_is_torchs_adafactor() -> None:
    torch.manual_seed(0)
    param = torch.nn.Parameter(torch.randn(4, 5, dtype=torch.float64))
    ours = param.detach().clone()
    optimizer = torch.optim.Adafactor([param], lr=0.01, foreach=False)
    row_var, col_var = helpers.factored_zeros(ours)
    for step in range(1, 15):
        param.grad = torch.randn(4, 5, dtype=torch.float64)
        helpers.factored_ema_(row_var, col_var, param.grad, step**-0.8)
        update = param.grad * helpers.factored_rsqrt(row_var, col_var, torch.finfo(torch.float64).eps)
        update = helpers.rms_clip(update, 1.0)
        alpha = max(1e-3, helpers.rms(ours).item()) * min(0.01, step**-0.5)
        ours -= alpha * update
        optimizer.step()  # type: ignore[no-untyped-call]
        torch.testing.assert_close(ours, param.detach())


def test_zero_gradients_are_finite_and_small_ones_do_not_underflow() -> None:
    grad = torch.zeros(3, 4)
    row_var, col_var = helpers.factored_zeros(grad)
    helpers.factored_ema_(row_var, col_var, grad, 0.5)
    assert torch.equal(grad * helpers.factored_rsqrt(row_var, col_var), grad)
    grad = torch.full((3, 4), 1e-15)
    helpers.factored_ema_(row_var, col_var, grad, 1.0)
    torch.testing.assert_close(grad * helpers.factored_rsqrt(row_var, col_var), torch.ones(3, 4))


def test_only_matrices_are_factored() -> None:
    assert helpers.is_factorable(torch.zeros(2, 3, 4)) and not helpers.is_factorable(torch.zeros(5))
    assert helpers.is_factorable(torch.zeros(128, 128), 128)
    assert not helpers.is_factorable(torch.zeros(128, 127), 128)
    assert not helpers.is_factorable(torch.zeros(0, 3))
    with pytest.raises(ValueError, match=r"shape \(5,\)"):
        helpers.factored_zeros(torch.zeros(5))
