"""Numbers may be floats or tensors, and mean the same."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from zoo import helpers

from .strategies import tensors

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


@given(NUMBERS, NUMBERS)
def test_minimum_and_maximum_agree_with_torch_for_every_kind(a: float, b: float) -> None:
    ta, tb = torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)
    for ours, theirs in ((helpers.minimum, torch.minimum), (helpers.maximum, torch.maximum)):
        expected = theirs(ta, tb)
        for result in (ours(a, b), ours(ta, b), ours(a, tb), ours(ta, tb)):
            torch.testing.assert_close(
                torch.as_tensor(result, dtype=torch.float64), expected, rtol=0, atol=0, equal_nan=True
            )


def test_floats_stay_floats_and_tensors_stay_tensors() -> None:
    t = torch.tensor(4.0)
    assert type(helpers.sqrt(4.0)) is float and torch.is_tensor(helpers.sqrt(t))
    assert type(helpers.maximum(1.0, 2.0)) is float and torch.is_tensor(helpers.maximum(1.0, t))
    assert type(helpers.where(True, 1.0, 2.0)) is float and torch.is_tensor(helpers.where(t > 1, 1.0, 2.0))
    assert type(helpers.debias(0.9, 3)) is float and torch.is_tensor(helpers.debias(0.9, t))
    assert type(helpers.debias_beta(0.9, 3)) is float and torch.is_tensor(helpers.debias_beta(t / 5, 3))
    assert type(helpers.sma_length(0.9, 3)) is float and torch.is_tensor(helpers.sma_length(0.9, t))


@pytest.mark.parametrize("condition", [True, False])
def test_where_chooses(condition: bool) -> None:
    expected = 3.0 if condition else 5.0
    assert helpers.where(condition, 3.0, 5.0) == expected
    assert helpers.where(torch.tensor(condition), torch.tensor(3.0), 5.0) == expected


def test_sqrt_is_the_root_that_torch_optimizers_take() -> None:
    values = [1 - 0.999**t for t in range(1, 5000)]
    assert [helpers.sqrt(v) for v in values] == [v**0.5 for v in values]
    with pytest.raises(ValueError):
        helpers.sqrt(-1.0)
    assert math.isinf(helpers.sqrt(math.inf))


@given(tensors(3, dtype=torch.float32), st.floats(-3, 3, width=32))
def test_scaled_sums_are_bit_equal_to_torch_for_floats(xs: list[torch.Tensor], scale: float) -> None:
    x, a, b = xs
    b = b.abs() + 0.5
    assert torch.equal(helpers.add_(x.clone(), a, scale), x.clone().add_(a, alpha=scale))
    assert torch.equal(helpers.add_scaled(x, a, scale), x.add(a, alpha=scale))
    assert torch.equal(helpers.addcmul_(x.clone(), a, b, scale), x.clone().addcmul_(a, b, value=scale))
    assert torch.equal(helpers.addcdiv_(x.clone(), a, b, scale), x.clone().addcdiv_(a, b, value=scale))


def test_as_like_converts_tensors_only() -> None:
    like = torch.ones(3, dtype=torch.float32)
    assert helpers.as_like(0.1, like) == 0.1
    same = torch.tensor(0.1)
    assert helpers.as_like(same, like) is same
    assert helpers.as_like(torch.tensor(0.1, dtype=torch.float64), like).dtype == torch.float32
