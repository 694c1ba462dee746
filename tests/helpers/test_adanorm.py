"""AdaNorm keeps its running norm in place."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from zoo import helpers

from .strategies import tensors


@given(tensors(1), st.floats(0, 1), st.floats(0, 10))
def test_it_follows_its_formula(xs: list[Tensor], gamma: float, start: float) -> None:
    (grad,) = xs
    running = torch.tensor(start, dtype=torch.float64)
    norm = grad.norm()
    e = gamma * start + (1 - gamma) * norm
    expected = grad * (e / norm) if norm > 0 and e > norm else grad
    result = helpers.adanorm_(grad, running, gamma)
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(running, e)


def test_the_running_norm_is_updated_in_place() -> None:
    # A widely copied helper computes the new norm and drops it: its state stays 0 for ever.
    running = torch.zeros(())
    address = running.data_ptr()
    for step in range(1, 4):
        helpers.adanorm_(torch.tensor([3.0, 4.0]), running, 0.9)
        torch.testing.assert_close(running, torch.tensor(5 * (1 - 0.9**step)))
    assert running.data_ptr() == address


def test_a_short_gradient_is_lengthened_and_a_long_one_is_not() -> None:
    running = torch.tensor(10.0)
    short = helpers.adanorm_(torch.tensor([0.3, 0.4]), running, 0.95)
    torch.testing.assert_close(short.norm(), running)
    grad = torch.tensor([300.0, 400.0])
    assert torch.equal(helpers.adanorm_(grad, running, 0.95), grad)


def test_a_zero_gradient_stays_zero_and_lets_the_norm_fall() -> None:
    running = torch.tensor(2.0)
    result = helpers.adanorm_(torch.zeros(3), running, 0.5)
    assert torch.equal(result, torch.zeros(3)) and running.item() == 1.0
