"""What torch's optimizers do around their formulas."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.nn import Parameter
from torch.optim.optimizer import _default_to_fused_or_foreach

from zoo import helpers


def test_maximize_mirrors_a_copy() -> None:
    grad = torch.tensor([1.0, -2.0])
    assert helpers.maximize(grad).tolist() == [-1.0, 2.0] and grad.tolist() == [1.0, -2.0]


def test_real_views_share_memory() -> None:
    real, imaginary = torch.zeros(2), torch.zeros(3, dtype=torch.complex64)
    views = helpers.view_as_real([real, imaginary])
    assert views[0] is real and views[1].shape == (3, 2)
    views[1].fill_(1.0)
    assert imaginary.tolist() == [1 + 1j] * 3


def test_parameters_with_a_gradient_are_collected_in_order() -> None:
    params = [Parameter(torch.zeros(2)) for _ in range(3)] + [Parameter(torch.zeros(1, dtype=torch.complex64))]
    params[0].grad, params[2].grad = torch.ones(2), torch.zeros(2)
    found = helpers.collect_trainable(params)
    assert [id(p) for p in found.params] == [id(params[0]), id(params[2])]
    assert found.grads[0] is params[0].grad and found.indices == [0, 2] and not found.has_complex
    params[3].grad = torch.ones(1, dtype=torch.complex64)
    assert helpers.collect_trainable(params).has_complex
    assert helpers.collect_trainable([]).params == []


def test_sparse_gradients_are_refused_by_name_unless_allowed() -> None:
    embedding = torch.nn.Embedding(3, 2, sparse=True)
    embedding(torch.tensor([0])).sum().backward()
    with pytest.raises(RuntimeError, match=r"parameter 1 of shape \(3, 2\) has a sparse gradient"):
        helpers.collect_trainable([Parameter(torch.zeros(1)), embedding.weight])
    assert helpers.collect_trainable([embedding.weight], allow_sparse=True).params == [embedding.weight]


def test_which_kernels_may_run_is_torchs_answer() -> None:
    class Odd(torch.Tensor):
        pass

    lists: list[list[torch.Tensor]] = [
        [Parameter(torch.zeros(2))],
        [torch.zeros(2)],
        [torch.zeros(2, dtype=torch.int32)],
        [torch.zeros(2, device="meta")],
        [torch.zeros(2).as_subclass(Odd)],
        [],
    ]
    for params, differentiable, fused in itertools.product(lists, (False, True), (False, True)):
        expected = _default_to_fused_or_foreach(params, differentiable, fused)
        ours = helpers.default_to_fused_or_foreach(params, differentiable=differentiable, use_fused=fused)
        assert ours == expected
    assert helpers.default_to_fused_or_foreach([torch.zeros(2)], differentiable=True, use_fused=True) == (
        False,
        False,
    )
