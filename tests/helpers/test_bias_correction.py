"""Bias corrections are exact at step 1 and stable at step 10⁷, for float and tensor numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given

from zoo import helpers

from .strategies import BETAS, STEPS

KINDS = ["step", "beta", "both"]


def as_kind(kind: str, beta: float, step: int, dtype: torch.dtype) -> tuple[float | torch.Tensor, ...]:
    b = torch.tensor(beta, dtype=dtype) if kind in ("beta", "both") else beta
    t = torch.tensor(float(step), dtype=dtype) if kind in ("step", "both") else step
    return b, t


def exact(beta: float, step: int) -> float:
    """1 − βᵗ for a float β, by rational arithmetic where that is small enough, else by expm1."""
    if step <= 50:
        return float(1 - Fraction(beta) ** step)
    return -math.expm1(step * math.log(beta)) if beta > 0 else 1.0


@given(BETAS, STEPS)
def test_float_debias_is_one_minus_the_power(beta: float, step: int) -> None:
    assert helpers.debias(beta, step) == 1 - beta**step, "as torch computes it"
    assert helpers.debias(beta, step) == pytest.approx(exact(beta, step), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@given(beta=BETAS, step=STEPS)
def test_tensor_debias_keeps_all_digits(kind: str, dtype: torch.dtype, beta: float, step: int) -> None:
    b, t = as_kind(kind, beta, step, dtype)
    seen = b.item() if isinstance(b, torch.Tensor) else beta
    result = helpers.debias(b, t)
    assert isinstance(result, torch.Tensor) and result.dtype == dtype
    precision = torch.finfo(dtype).eps
    assert result.item() == pytest.approx(exact(seen, step), rel=20 * precision)


@pytest.mark.parametrize("kind", KINDS)
@given(beta=BETAS)
def test_debias_at_step_one_is_exactly_one_minus_beta(kind: str, beta: float) -> None:
    b, t = as_kind(kind, beta, 1, torch.float64)
    assert helpers.debias(beta, 1) == 1 - beta
    assert helpers.debias(b, t) == 1 - beta


@pytest.mark.parametrize("beta", [0.9, 0.999, 0.9999])
def test_debias_at_step_ten_million_is_one(beta: float) -> None:
    for kind in KINDS:
        assert helpers.debias(*as_kind(kind, beta, 10**7, torch.float32)) == 1.0
    assert helpers.debias(beta, 10**7) == 1.0


def test_the_formula_as_printed_would_lose_digits_in_float32() -> None:
    step = torch.tensor(1.0)
    as_printed = (1 - 0.999**step).item()
    assert abs(as_printed / 0.001 - 1) > 1e-5
    assert helpers.debias(0.999, step).item() == pytest.approx(0.001, rel=1e-7)  # type: ignore[union-attr]


@given(BETAS, STEPS)
def test_debias_beta_is_its_formula(beta: float, step: int) -> None:
    expected = float((Fraction(beta) ** step - Fraction(beta)) / (Fraction(beta) ** step - 1)) if step < 30 else None
    if expected is not None:
        assert helpers.debias_beta(beta, step) == pytest.approx(expected, rel=1e-9, abs=1e-300)
    assert 0 <= helpers.debias_beta(beta, step) <= beta
    for kind in KINDS:
        b, t = as_kind(kind, beta, step, torch.float64)
        assert float(helpers.debias_beta(b, t)) == pytest.approx(helpers.debias_beta(beta, step), rel=1e-9)


def test_debias_beta_starts_at_zero_and_ends_at_beta() -> None:
    assert helpers.debias_beta(0.999, 1) == 0.0
    assert helpers.debias_beta(torch.tensor(0.999), 1) == 0.0
    assert helpers.debias_beta(0.999, torch.tensor(1.0)) == 0.0
    assert helpers.debias_beta(0.999, 10**7) == pytest.approx(0.999)


def test_an_average_with_debiased_beta_equals_a_corrected_average() -> None:
    torch.manual_seed(0)
    corrected, debiased, beta = torch.zeros(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64), 0.97
    for step in range(1, 30):
        x = torch.randn(4, dtype=torch.float64)
        helpers.ema_(corrected, x, 1 - beta)
        helpers.ema_(debiased, x, 1 - helpers.debias_beta(beta, step))
        torch.testing.assert_close(debiased, corrected / helpers.debias(beta, step))


def test_adamd_corrects_the_denominator_only() -> None:
    assert helpers.adam_debias(0.9, 0.999, 3) == (helpers.debias(0.9, 3), helpers.debias(0.999, 3))
    assert helpers.adam_debias(0.9, 0.999, 3, adamd=True) == (1.0, helpers.debias(0.999, 3))
