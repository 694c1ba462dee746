"""The projection of AdamP and SGDP."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from torch import Tensor

from zoo import helpers

from .strategies import tensors


def by_the_paper(
    update: Tensor, param: Tensor, grad: Tensor, delta: float, wd_ratio: float, eps: float
) -> tuple[Tensor, float]:
    """Algorithm 3 of the paper with branches, on whole tensors."""
    if param.ndim > 1:
        for rows in (param.shape[0], 1):
            p, g, u = (x.reshape(rows, -1) for x in (param, grad, update))
            if F.cosine_similarity(p, g, dim=1, eps=eps).abs().max() < delta / math.sqrt(p.shape[1]):
                unit = p / (p.norm(dim=1, keepdim=True) + eps)
                return (u - unit * (unit * u).sum(1, keepdim=True)).reshape(param.shape), wd_ratio
    return update, 1.0


@given(tensors(3))
def test_it_is_the_papers_algorithm_without_a_branch(xs: list[Tensor]) -> None:
    update, param, grad = xs
    for delta in (0.01, 0.1, 0.9, 10.0):
        expected, ratio = by_the_paper(update, param, grad, delta, 0.1, 1e-8)
        result, factor = helpers.project_scale_invariant(update, param, grad, delta)
        torch.testing.assert_close(result, expected)
        assert factor.item() == pytest.approx(ratio)


def orthogonal_rows(rows: int, columns: int) -> tuple[Tensor, Tensor]:
    param, grad = torch.randn(rows, columns).double(), torch.randn(rows, columns).double()
    grad -= param * (param * grad).sum(1, keepdim=True) / param.square().sum(1, keepdim=True)
    return param, grad


def test_channels_are_looked_at_before_the_layer() -> None:
    torch.manual_seed(0)
    param, grad = orthogonal_rows(3, 8)
    update = torch.randn(3, 8).double()
    result, factor = helpers.project_scale_invariant(update, param, grad)
    assert factor.item() == pytest.approx(0.1)
    torch.testing.assert_close((result * param).sum(1), torch.zeros(3).double(), rtol=0, atol=1e-6)


def test_the_layer_is_projected_where_only_it_is_orthogonal() -> None:
    param = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    grad = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    result, factor = helpers.project_scale_invariant(torch.ones(2, 2), param, grad)
    assert factor.item() == pytest.approx(0.1)
    torch.testing.assert_close((result * param).sum(), torch.tensor(0.0), rtol=0, atol=1e-6)
    torch.testing.assert_close(result, torch.tensor([[0.0, 1.0], [0.0, 1.0]]))


def test_a_gradient_with_a_radial_part_is_left_alone() -> None:
    param = torch.randn(3, 8)
    update = torch.randn(3, 8)
    result, factor = helpers.project_scale_invariant(update, param, param)
    assert torch.equal(result, update) and factor.item() == 1.0
