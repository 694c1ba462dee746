"""The trust ratio of LARS and LAMB."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from zoo import helpers

from .strategies import tensors


@given(tensors(2), st.floats(1e-4, 10))
def test_the_ratio_is_that_of_the_norms_without_the_learning_rate(xs: list[Tensor], lr: float) -> None:
    param, direction = xs
    ratio = helpers.trust_ratio(param, direction * lr, lr)
    expected = param.norm() / direction.norm() if param.any() and direction.any() else torch.tensor(1.0).double()
    torch.testing.assert_close(ratio, expected)


@pytest.mark.parametrize(("param", "update"), [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_the_ratio_is_one_where_either_norm_is_zero(param: float, update: float) -> None:
    assert helpers.trust_ratio(torch.full((3,), param), torch.full((3,), update)).item() == 1.0


def test_the_ratio_may_be_bounded() -> None:
    param, update = torch.full((4,), 100.0), torch.ones(4)
    assert helpers.trust_ratio(param, update).item() == 100.0
    assert helpers.trust_ratio(param, update, upper=10.0).item() == 10.0
    assert helpers.trust_ratio(update, param, lower=torch.tensor(0.5)).item() == 0.5


def test_a_learning_rate_of_zero_gives_one() -> None:
    assert helpers.trust_ratio(torch.ones(3), torch.zeros(3), 0.0).item() == 1.0
