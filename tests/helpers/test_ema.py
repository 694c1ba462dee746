"""Moving averages and momentum are torch's, bit for bit where the numbers are floats."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from zoo import helpers

from .strategies import tensors

UNIT = st.floats(0, 1)


@given(tensors(2, dtype=torch.float32), UNIT)
def test_ema_is_torchs_lerp(xs: list[Tensor], weight: float) -> None:
    avg, x = xs
    expected = avg.clone().lerp_(x, weight)
    assert torch.equal(helpers.ema_(avg, x, weight), expected)
    assert torch.equal(avg, expected), "in place"


@given(tensors(2, dtype=torch.float32), UNIT)
def test_ema_sq_is_torchs_mul_and_addcmul(xs: list[Tensor], beta: float) -> None:
    avg_sq, x = xs[0].abs(), xs[1]
    expected = avg_sq.clone().mul_(beta).addcmul_(x, x, value=1 - beta)
    assert torch.equal(helpers.ema_sq_(avg_sq, x, beta), expected)
    assert torch.equal(avg_sq, expected), "in place"


@given(tensors(2), UNIT)
def test_averages_follow_their_formulas(xs: list[Tensor], beta: float) -> None:
    avg, x = xs
    torch.testing.assert_close(helpers.ema_(avg.clone(), x, 1 - beta), beta * avg + (1 - beta) * x)
    torch.testing.assert_close(helpers.ema_sq_(avg.abs(), x, beta), beta * avg.abs() + (1 - beta) * x * x)
    torch.testing.assert_close(helpers.nesterov_ema(avg, x, beta), (1 - beta) * x + beta * avg)


def test_an_average_of_a_constant_is_that_constant_exactly() -> None:
    avg = torch.full((3,), 0.1)
    for _ in range(100):
        helpers.ema_(avg, torch.full((3,), 0.1), 0.3)
    assert torch.equal(avg, torch.full((3,), 0.1))


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("dampening", [0.0, 0.25])
def test_momentum_is_torchs_sgd(nesterov: bool, dampening: float) -> None:
    if nesterov and dampening:
        dampening = 0.0  # torch refuses both
    torch.manual_seed(0)
    param = torch.nn.Parameter(torch.randn(5))
    ours = param.detach().clone()
    optimizer = torch.optim.SGD([param], lr=0.1, momentum=0.9, dampening=dampening, nesterov=nesterov, foreach=False)
    buffer = None
    for _ in range(5):
        param.grad = torch.randn(5)
        if buffer is None:
            buffer = param.grad.clone()
        else:
            helpers.momentum_(buffer, param.grad, 0.9, dampening)
        update = helpers.nesterov(buffer, param.grad, 0.9) if nesterov else buffer
        ours.add_(update, alpha=-0.1)
        optimizer.step()
    assert torch.equal(ours, param.detach())


def test_a_tensor_weight_of_another_dtype_is_accepted() -> None:
    avg, x = torch.zeros(3, dtype=torch.bfloat16), torch.ones(3, dtype=torch.bfloat16)
    assert torch.equal(helpers.ema_(avg, x, torch.tensor(0.5)), torch.full((3,), 0.5, dtype=torch.bfloat16))


def test_autograd_flows_through_averages() -> None:
    def two_steps(x: Tensor) -> Tensor:
        avg, avg_sq = torch.zeros_like(x), torch.zeros_like(x)
        for _ in range(2):
            helpers.ema_(avg, x, 0.1)
            helpers.ema_sq_(avg_sq, x, 0.9)
        return avg / helpers.adam_denominator(avg_sq, 0.19, 1e-3)

    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(two_steps, (x,))
