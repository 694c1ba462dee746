"""Rectification follows RAdam's formulas, and never hands out a negative or undefined weight."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from zoo import helpers

from .strategies import BETAS, STEPS

BETA2 = [0.0, 0.5, 0.6, 2 / 3, 0.7, 0.9, 0.98, 0.99, 0.999, 0.9999, 0.99999]


def exact_length(beta2: float, step: int) -> float:
    """ρ_t by rational arithmetic."""
    b = Fraction(beta2)
    power = b**step
    return float(2 / (1 - b) - 1 - 2 * step * power / (1 - power))


@pytest.mark.parametrize("beta2", BETA2)
@pytest.mark.parametrize("step", [1, 2, 4, 5, 6, 7, 20, 100])
def test_sma_length_is_its_formula(beta2: float, step: int) -> None:
    assert helpers.sma_length(beta2, step) == pytest.approx(exact_length(beta2, step), rel=1e-6)
    for dtype, digits in ((torch.float32, 3e-6), (torch.float64, 1e-11)):
        b, t = torch.tensor(beta2, dtype=dtype), torch.tensor(float(step), dtype=dtype)
        for mixed in (helpers.sma_length(b, t), helpers.sma_length(b, step)):
            assert float(mixed) == pytest.approx(exact_length(b.item(), step), rel=digits)
        assert float(helpers.sma_length(beta2, t)) == pytest.approx(exact_length(beta2, step), rel=digits)


@given(BETAS, STEPS)
def test_sma_length_lies_between_one_and_its_limit(beta2: float, step: int) -> None:
    limit = helpers.sma_length_limit(beta2)
    for length in (helpers.sma_length(beta2, step), helpers.sma_length(torch.tensor(beta2), float(step))):
        assert 1 - 1e-4 <= length <= limit * (1 + 2e-2)
    assert helpers.sma_length(beta2, 1) == pytest.approx(1.0, rel=1e-9)


def test_sma_length_reaches_its_limit() -> None:
    for beta2 in (0.9, 0.999):
        assert helpers.sma_length(beta2, 10**7) == pytest.approx(2 / (1 - beta2) - 1)
        assert float(helpers.sma_length(beta2, torch.tensor(1e7))) == pytest.approx(2 / (1 - beta2) - 1)


def test_float32_steps_fall_on_the_right_side_of_the_threshold() -> None:
    # ρ₅ is below 5 by 4e-4 for this β₂; the formula as printed is off by more than that in float32.
    b, t = torch.tensor(0.9999), torch.tensor(5.0)
    exact = exact_length(b.item(), 5)
    as_printed = 2 / (1 - b) - 1 - 2 * t * b**t / (1 - b**t)
    assert abs(as_printed.item() - exact) > 4e-4
    assert float(helpers.sma_length(b, t)) == pytest.approx(exact, abs=1e-5)
    assert helpers.rectify(b, t) == (0.0, 1.0)


@given(
    st.one_of(BETAS, st.sampled_from(BETA2)),
    STEPS,
    st.sampled_from([4.0, 5.0, 6.5]),
    st.sampled_from(["momentum", "none"]),
)
def test_weights_are_finite_and_never_negative(
    beta2: float, step: int, threshold: float, below: helpers.BelowThreshold
) -> None:
    variants = [helpers.rectify(beta2, step, threshold, below)]
    for dtype in (torch.float32, torch.float64):
        b, t = torch.tensor(beta2, dtype=dtype), torch.tensor(float(step), dtype=dtype)
        variants += [helpers.rectify(b, t, threshold, below), helpers.rectify(beta2, t, threshold, below)]
    for adaptive, plain in variants:
        a, q = float(adaptive), float(plain)
        assert math.isfinite(a) and a >= 0 and q in (0.0, 1.0)
        assert a == 0 or q == 0, "one or the other, never both"
        assert a <= 1 + 1e-3
        if a == 0:
            assert q == (1.0 if below == "momentum" else 0.0)


def test_no_nan_enters_a_tensor_step() -> None:
    steps = torch.arange(1.0, 50.0, requires_grad=True)
    adaptive, plain = torch.func.vmap(lambda t: helpers.rectify(0.999, t))(steps)
    assert isinstance(adaptive, Tensor) and isinstance(plain, Tensor)
    assert torch.isfinite(adaptive).all() and torch.isfinite(plain).all()
    (slope,) = torch.autograd.grad(adaptive.sum(), steps)
    assert torch.isfinite(slope).all(), "nor its derivative"


def test_float_and_tensor_steps_agree() -> None:
    for step in range(1, 200):
        as_floats = helpers.rectify(0.99, step)
        as_tensors = helpers.rectify(
            torch.tensor(0.99, dtype=torch.float64), torch.tensor(float(step), dtype=torch.float64)
        )
        assert [float(x) for x in as_tensors] == pytest.approx(list(as_floats), rel=1e-9)


@pytest.mark.parametrize("beta2", [0.9, 0.99, 0.999])
@pytest.mark.parametrize("tensor_step", [False, True])
def test_the_rule_with_these_weights_is_torchs_radam(beta2: float, tensor_step: bool) -> None:
    torch.manual_seed(0)
    param = torch.nn.Parameter(torch.randn(6, dtype=torch.float64))
    ours = param.detach().clone()
    optimizer = torch.optim.RAdam([param], lr=0.01, betas=(0.9, beta2), eps=1e-8, foreach=False)
    avg, avg_sq = torch.zeros_like(ours), torch.zeros_like(ours)
    for number in range(1, 40):
        param.grad = torch.randn(6, dtype=torch.float64)
        step = torch.tensor(float(number), dtype=torch.float64) if tensor_step else number
        helpers.ema_(avg, param.grad, 1 - 0.9)
        helpers.ema_sq_(avg_sq, param.grad, beta2)
        r = helpers.rectify(beta2, step)
        adaptive = r.adaptive * helpers.sqrt(helpers.debias(beta2, step)) / (avg_sq.sqrt() + 1e-8)
        ours -= 0.01 * avg / helpers.debias(0.9, step) * (adaptive + r.plain)
        optimizer.step()
        torch.testing.assert_close(ours, param.detach(), rtol=1e-10, atol=1e-12)


def test_bad_options_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 4"):
        helpers.rectify(0.999, 1, threshold=3.0)
    with pytest.raises(ValueError, match="below must be"):
        helpers.rectify(0.999, 1, below="sgd")  # type: ignore[arg-type]
