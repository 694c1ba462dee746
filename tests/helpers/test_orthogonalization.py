"""Orthogonalization by matrix products."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.optim._muon import _zeropower_via_newtonschulz

from zoo import helpers

SHAPES = [(4, 4), (3, 7), (7, 3), (1, 5), (5, 1), (1, 1)]


def well_conditioned(shape: tuple[int, ...], seed: int) -> Tensor:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    u, s, vt = torch.linalg.svd(x, full_matrices=False)
    result: Tensor = u * (s.clamp(min=0.05 * s.max().item())).unsqueeze(-2) @ vt
    return result


def polar_factor(x: Tensor) -> Tensor:
    u, _, vt = torch.linalg.svd(x, full_matrices=False)
    result: Tensor = u @ vt
    return result


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@given(seed=st.integers(0, 10**6))
def test_singular_values_end_near_one(shape: tuple[int, int], seed: int) -> None:
    values = torch.linalg.svdvals(helpers.newton_schulz(well_conditioned(shape, seed)))
    assert values.min() > 0.6 and values.max() < 1.3


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@given(seed=st.integers(0, 10**6))
def test_polar_express_converges_to_the_polar_factor(shape: tuple[int, int], seed: int) -> None:
    x = well_conditioned(shape, seed)
    torch.testing.assert_close(helpers.polar_express(x, steps=12), polar_factor(x), rtol=0, atol=1e-6)
    values = torch.linalg.svdvals(helpers.polar_express(x, steps=5))
    assert values.min() > 0.85 and values.max() < 1.15


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_newton_schulz_in_bfloat16_is_torchs_muon(shape: tuple[int, int]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    ours = helpers.newton_schulz(x, dtype=torch.bfloat16)
    theirs = _zeropower_via_newtonschulz(x, helpers.QUINTIC, 5, 1e-7)
    assert ours.dtype == torch.float32
    assert torch.equal(ours, theirs.float())


def test_the_iteration_is_the_odd_polynomial_of_the_singular_values() -> None:
    x = well_conditioned((3, 5), 0)
    a, b, c = helpers.QUINTIC
    u, s, vt = torch.linalg.svd(x, full_matrices=False)
    s = s / s.norm()
    for _ in range(3):
        s = a * s + b * s**3 + c * s**5
    torch.testing.assert_close(helpers.newton_schulz(x, steps=3), u * s @ vt)


@pytest.mark.parametrize("function", [helpers.newton_schulz, helpers.polar_express])
def test_scale_and_transposition_do_not_matter(function: object) -> None:
    x = well_conditioned((4, 6), 3)
    result = function(x)  # type: ignore[operator]
    torch.testing.assert_close(function(x * 1e4), result)  # type: ignore[operator]
    torch.testing.assert_close(function(x.mT), result.mT)  # type: ignore[operator]


@pytest.mark.parametrize("function", [helpers.newton_schulz, helpers.polar_express])
def test_a_stack_is_its_matrices_each_on_their_own(function: object) -> None:
    stack = torch.stack([well_conditioned((4, 3), seed) for seed in range(6)]).view(2, 3, 4, 3)
    result = function(stack)  # type: ignore[operator]
    for i in range(2):
        for j in range(3):
            torch.testing.assert_close(result[i, j], function(stack[i, j]))  # type: ignore[operator]


@pytest.mark.parametrize("function", [helpers.newton_schulz, helpers.polar_express])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_zero_and_rank_deficient_matrices_are_finite(function: object, dtype: torch.dtype) -> None:
    assert not function(torch.zeros(3, 4, dtype=dtype)).any()  # type: ignore[operator]
    ones = function(torch.ones(3, 4, dtype=dtype))  # type: ignore[operator]
    assert torch.isfinite(ones).all() and ones.dtype == dtype


def test_coefficients_may_change_with_the_step() -> None:
    x = well_conditioned((3, 4), 0)
    same = helpers.newton_schulz(x, 2, [helpers.QUINTIC, helpers.QUINTIC])
    assert torch.equal(same, helpers.newton_schulz(x, 2))
    with pytest.raises(ValueError, match="1 triples of coefficients for 2 steps"):
        helpers.newton_schulz(x, 2, [helpers.QUINTIC])


@pytest.mark.parametrize("function", [helpers.newton_schulz, helpers.polar_express])
def test_vectors_are_refused(function: object) -> None:
    with pytest.raises(ValueError, match=r"shape \(4,\) is no matrix"):
        function(torch.ones(4))  # type: ignore[operator]
