"""Hutchinson's estimate: honest draws, the right parameter, clear errors, no leak."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import Parameter

from zoo import helpers


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def quadratic(*curvatures: Tensor) -> tuple[list[Parameter], list[Tensor]]:
    """Parameters of ½·Σ h·θ² and their gradients, with a graph."""
    params = [Parameter(torch.randn(h.shape, generator=seeded(9), dtype=h.dtype)) for h in curvatures]
    loss = torch.stack([(0.5 * h * p * p).sum() for h, p in zip(curvatures, params, strict=True)]).sum()
    return params, list(torch.autograd.grad(loss, params, create_graph=True))


def test_rademacher_draws_are_really_plus_and_minus_one() -> None:
    # A widely copied helper draws only −1.
    draws = helpers.rademacher_like(torch.empty(10_000), seeded())
    assert set(draws.tolist()) == {-1.0, 1.0}
    assert abs(draws.mean().item()) < 0.05


def test_gaussian_draws_have_mean_zero_and_variance_one() -> None:
    draws = helpers.gaussian_like(torch.empty(20_000), seeded())
    assert abs(draws.mean().item()) < 0.03 and abs(draws.var().item() - 1) < 0.05


@pytest.mark.parametrize("draw", [helpers.rademacher_like, helpers.gaussian_like])
def test_draws_have_the_parameters_dtype_and_shape_and_repeat(draw: object) -> None:
    for like in (torch.empty(()), torch.empty(0, 3), torch.empty(2, 3, dtype=torch.bfloat16)):
        first, second = draw(like, seeded(3)), draw(like, seeded(3))  # type: ignore[operator]
        assert first.shape == like.shape and first.dtype == like.dtype
        assert torch.equal(first, second)


@given(st.integers(0, 10**6), st.integers(1, 3))
def test_one_rademacher_sample_is_exact_on_diagonal_quadratics(seed: int, samples: int) -> None:
    curvatures = [torch.randn(s, generator=seeded(seed), dtype=torch.float64) for s in [(), (3,), (2, 2)]]
    params, grads = quadratic(*curvatures)
    hessian = helpers.hutchinson_hessian(params, grads, generator=seeded(seed), samples=samples)
    for estimate, curvature in zip(hessian, curvatures, strict=True):
        assert estimate is not None
        torch.testing.assert_close(estimate, curvature)


@pytest.mark.parametrize("distribution", ["rademacher", "gaussian"])
def test_many_samples_approach_the_diagonal_of_a_full_hessian(distribution: helpers.Distribution) -> None:
    torch.manual_seed(0)
    root = torch.randn(4, 4, dtype=torch.float64)
    matrix = root @ root.T
    param = Parameter(torch.randn(4, dtype=torch.float64))
    grads = torch.autograd.grad(0.5 * param @ matrix @ param, param, create_graph=True)
    (few,) = helpers.hutchinson_hessian([param], grads, generator=seeded(1), samples=1, distribution=distribution)
    grads = torch.autograd.grad(0.5 * param @ matrix @ param, param, create_graph=True)
    (many,) = helpers.hutchinson_hessian([param], grads, generator=seeded(1), samples=4000, distribution=distribution)
    assert few is not None and many is not None
    assert (many - matrix.diag()).norm() < 0.05 * matrix.diag().norm()
    assert (few - matrix.diag()).norm() > (many - matrix.diag()).norm()


def test_runs_repeat_and_the_global_random_state_is_not_touched() -> None:
    params, grads = quadratic(torch.ones(3))
    before = torch.get_rng_state()
    (first,) = helpers.hutchinson_hessian(params, grads, generator=seeded(7), distribution="gaussian")
    assert torch.equal(torch.get_rng_state(), before)
    params, grads = quadratic(torch.ones(3))
    (second,) = helpers.hutchinson_hessian(params, grads, generator=seeded(7), distribution="gaussian")
    assert first is not None and second is not None and torch.equal(first, second)


def test_the_list_is_aligned_with_all_parameters() -> None:
    params, grads = quadratic(torch.full((2,), 3.0), torch.full((3,), 5.0))
    idle = Parameter(torch.zeros(4))
    hessian = helpers.hutchinson_hessian(
        [idle, params[0], idle, params[1]], [None, grads[0], None, grads[1]], generator=seeded()
    )
    assert hessian[0] is None and hessian[2] is None
    assert torch.equal(hessian[1], torch.full((2,), 3.0))  # type: ignore[arg-type]
    assert torch.equal(hessian[3], torch.full((3,), 5.0))  # type: ignore[arg-type]


def test_parameters_and_gradients_are_left_as_they_are() -> None:
    params, grads = quadratic(torch.ones(3))
    params[0].grad = grads[0]
    values, gradient = params[0].detach().clone(), grads[0].detach().clone()
    helpers.hutchinson_hessian(params, [params[0].grad], generator=seeded())
    assert params[0].grad is grads[0] and params[0].grad.requires_grad
    assert torch.equal(params[0], values) and torch.equal(grads[0], gradient)


def test_it_runs_under_no_grad_as_a_step_does() -> None:
    params, grads = quadratic(torch.full((3,), 2.0))
    with torch.no_grad():
        (hessian,) = helpers.hutchinson_hessian(params, grads, generator=seeded())
    assert hessian is not None and torch.equal(hessian, torch.full((3,), 2.0)) and not hessian.requires_grad


def test_the_graph_is_freed_after_the_last_sample() -> None:
    params, grads = quadratic(torch.ones(3))
    helpers.hutchinson_hessian(params, grads, generator=seeded(), samples=3)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(grads, params, grad_outputs=[torch.ones(3)])


@pytest.mark.filterwarnings("ignore:Using backward")
def test_detached_gradients_let_the_graph_go() -> None:
    param = Parameter(torch.ones(3))
    marker = torch.ones(3, requires_grad=True)
    (param**3 * marker).sum().backward(create_graph=True)  # type: ignore[no-untyped-call]
    in_graph = weakref.ref(marker)
    del marker
    gc.collect()
    assert param.grad is not None and param.grad.requires_grad and in_graph() is not None
    helpers.detach_grads_([param, Parameter(torch.ones(1))])
    gc.collect()
    assert not param.grad.requires_grad and in_graph() is None


def test_a_parameter_that_no_gradient_depends_on_has_curvature_zero() -> None:
    curved, linear = Parameter(torch.ones(2)), Parameter(torch.ones(2))
    loss = (curved**2).sum() + linear.sum()
    grads = torch.autograd.grad(loss, [curved, linear], create_graph=True)
    with pytest.raises(RuntimeError, match="allow_linear"):
        helpers.hutchinson_hessian([curved, linear], grads, generator=seeded())
    hessian = helpers.hutchinson_hessian([curved, linear], grads, generator=seeded(), allow_linear=True)
    assert hessian[0] is not None and hessian[0].tolist() == [2.0, 2.0]
    assert hessian[1] is not None and hessian[1].tolist() == [0.0, 0.0]


def test_a_gradient_without_a_graph_says_create_graph() -> None:
    param = Parameter(torch.ones(3))
    (param**2).sum().backward()  # type: ignore[no-untyped-call]
    with pytest.raises(RuntimeError, match=r"parameter 0 of shape \(3,\).*backward\(create_graph=True\)"):
        helpers.hutchinson_hessian([param], [param.grad], generator=seeded())


def test_a_frozen_parameter_with_a_gradient_is_named() -> None:
    frozen = Parameter(torch.ones(3), requires_grad=False)
    params, grads = quadratic(torch.ones(2))
    with pytest.raises(RuntimeError, match="parameter 1 .*frozen"):
        helpers.hutchinson_hessian([params[0], frozen], [grads[0], torch.ones(3)], generator=seeded())


def test_a_sparse_gradient_is_named() -> None:
    embedding = torch.nn.Embedding(4, 2, sparse=True)
    embedding(torch.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="parameter 0 .*sparse"):
        helpers.hutchinson_hessian([embedding.weight], [embedding.weight.grad], generator=seeded())


def test_a_complex_parameter_is_named() -> None:
    param = Parameter(torch.ones(2, dtype=torch.complex64))
    grads = torch.autograd.grad(param.abs().square().sum(), param, create_graph=True)
    with pytest.raises(RuntimeError, match="parameter 0 .*complex"):
        helpers.hutchinson_hessian([param], grads, generator=seeded())


def test_bad_arguments_are_refused() -> None:
    params, grads = quadratic(torch.ones(2))
    with pytest.raises(ValueError, match="1 parameters but 2 gradients"):
        helpers.hutchinson_hessian(params, [*grads, None], generator=seeded())
    with pytest.raises(ValueError, match="samples"):
        helpers.hutchinson_hessian(params, grads, generator=seeded(), samples=0)
    with pytest.raises(ValueError, match="distribution"):
        helpers.hutchinson_hessian(params, grads, generator=seeded(), distribution="uniform")  # type: ignore[arg-type]


def test_nobody_with_a_gradient_is_fine() -> None:
    assert helpers.hutchinson_hessian([Parameter(torch.ones(2))], [None], generator=seeded()) == [None]


def test_a_hessian_set_from_outside_stays_with_its_parameter_when_some_have_no_gradient() -> None:
    # A widely copied helper counts only the parameters with a gradient, so that every entry behind an idle
    # parameter lands in another's place.
    params = [Parameter(torch.zeros(3)) for _ in range(4)]
    for index in (0, 2, 3):
        params[index].grad = torch.ones(3)
    entries = [torch.full((3,), float(index)) for index in range(4)]
    for hessian in (entries, dict(zip(params, entries, strict=True))):
        aligned = helpers.assign_hessian(params, hessian)  # type: ignore[arg-type]
        assert all(a is b for a, b in zip(aligned, entries, strict=True))
    partial = helpers.assign_hessian(params, {params[3]: entries[3], params[1]: entries[1]})
    assert partial[0] is None and partial[1] is entries[1] and partial[2] is None and partial[3] is entries[3]


def test_a_hessian_that_does_not_fit_is_refused() -> None:
    params = [Parameter(torch.zeros(3)), Parameter(torch.zeros(2))]
    with pytest.raises(ValueError, match="1 entries for 2 parameters"):
        helpers.assign_hessian(params, [torch.zeros(3)])
    with pytest.raises(ValueError, match=r"entry 1 has shape \(3,\), not \(2,\)"):
        helpers.assign_hessian(params, [None, torch.zeros(3)])
    with pytest.raises(ValueError, match="1 of 1 keys"):
        helpers.assign_hessian(params, {Parameter(torch.zeros(3)): torch.zeros(3)})
