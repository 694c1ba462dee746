"""The AMSGrad bound is torch's."""

from __future__ import annotations

import torch
from hypothesis import given
from torch import Tensor

from zoo import helpers

from .strategies import tensors


@given(tensors(2))
def test_the_running_maximum_is_kept_in_place(xs: list[Tensor]) -> None:
    running, avg_sq = xs[0].abs(), xs[1].abs()
    expected = torch.maximum(running, avg_sq)
    returned = helpers.ams_bound_(running, avg_sq)
    assert returned is running and torch.equal(running, expected)


def test_the_maximum_never_falls() -> None:
    torch.manual_seed(0)
    running = torch.zeros(6)
    for _ in range(20):
        before = running.clone()
        helpers.ams_bound_(running, torch.rand(6))
        assert (running >= before).all()


def test_real_and_imaginary_parts_are_bounded_each_on_their_own() -> None:
    running = torch.tensor([1 + 5j, 3 + 0j])
    helpers.ams_bound_(running, torch.tensor([2 + 4j, 1 + 1j]))
    assert torch.equal(running, torch.tensor([2 + 5j, 3 + 1j]))


def test_the_denominator_is_torchs_amsgrad_bit_for_bit() -> None:
    torch.manual_seed(0)
    param = torch.nn.Parameter(torch.randn(7))
    ours = param.detach().clone()
    optimizer = torch.optim.Adam([param], lr=0.01, amsgrad=True, foreach=False)
    avg, avg_sq, bound = torch.zeros(7), torch.zeros(7), torch.zeros(7)
    for step in range(1, 20):
        param.grad = torch.randn(7) / step
        helpers.ema_(avg, param.grad, 1 - 0.9)
        helpers.ema_sq_(avg_sq, param.grad, 0.999)
        helpers.ams_bound_(bound, avg_sq)
        numerator_debias, denominator_debias = helpers.adam_debias(0.9, 0.999, step)
        denominator = helpers.adam_denominator(bound, denominator_debias, 1e-8)
        helpers.addcdiv_(ours, avg, denominator, -(0.01 / numerator_debias))
        optimizer.step()
    assert torch.equal(ours, param.detach())
    assert torch.equal(bound, optimizer.state[param]["max_exp_avg_sq"])


@given(tensors(1))
def test_the_extra_epsilon_stands_under_the_root(xs: list[Tensor]) -> None:
    avg_sq = xs[0].abs()
    expected = (avg_sq + 1e-3).sqrt() / 0.5**0.5 + 1e-8
    torch.testing.assert_close(helpers.adam_denominator(avg_sq, 0.5, 1e-8, sqrt_eps=1e-3), expected)


def test_autograd_flows_through_the_bound() -> None:
    def two_steps(x: Tensor) -> Tensor:
        running = torch.zeros_like(x)
        total = torch.zeros_like(x)
        for factor in (1.0, 0.5, 2.0):
            helpers.ams_bound_(running, factor * x * x)
            total = total + helpers.adam_denominator(running, 0.5, 1e-3)
        return total

    assert torch.autograd.gradcheck(two_steps, (torch.rand(4, dtype=torch.float64).add(0.5).requires_grad_(),))
