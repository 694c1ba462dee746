"""OrthoGrad: the gradient turned orthogonal to the parameter, at its own length."""

from __future__ import annotations

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

from zoo import helpers

from .strategies import tensors

SEVERAL = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple).filter(lambda s: s != (1,) * len(s))


@given(tensors(2, SEVERAL))
def test_the_result_is_orthogonal_and_as_long_as_the_gradient(xs: list[Tensor]) -> None:
    grad, param = xs
    projected = grad - param * (param * grad).sum() / (param.square().sum() + 1e-30)
    assume(projected.norm() > 1e-8 * grad.norm())
    result = helpers.orthograd(grad, param)
    torch.testing.assert_close(result, projected * grad.norm() / projected.norm())
    if param.norm() > 1e-10:
        cosine = (result * param).sum() / (result.norm() * param.norm())
        assert abs(cosine.item()) < 1e-6
    assert result.norm().item() == pytest.approx(grad.norm().item())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_gradient_along_the_parameter_gives_zero_and_not_amplified_noise(dtype: torch.dtype) -> None:
    for seed in range(20):
        torch.manual_seed(seed)
        param = torch.randn(7, dtype=dtype)
        assert torch.equal(helpers.orthograd(param * 3.7, param), torch.zeros(7, dtype=dtype))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (0,)])
def test_a_tensor_without_an_orthogonal_direction_keeps_its_gradient(shape: tuple[int, ...]) -> None:
    grad = torch.randn(shape)
    assert torch.equal(helpers.orthograd(grad, torch.randn(shape)), grad)


def test_a_zero_parameter_leaves_the_gradient_as_it_is() -> None:
    grad = torch.randn(4)
    torch.testing.assert_close(helpers.orthograd(grad, torch.zeros(4)), grad)


def test_complex_tensors_count_as_twice_as_many_real_ones() -> None:
    grad, param = torch.randn(4, dtype=torch.complex64), torch.randn(4, dtype=torch.complex64)
    as_real = helpers.orthograd(torch.view_as_real(grad), torch.view_as_real(param))
    torch.testing.assert_close(torch.view_as_real(helpers.orthograd(grad, param)), as_real)
