"""What an optimizer claims to be able to do, it does; what it does not claim, it refuses with a reason."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import zoo
from zoo.capabilities import Capabilities, capabilities_of

from .common import every_optimizer, make


def claims(name: str) -> Capabilities:
    return capabilities_of(zoo.optimizer_class(name))


def networks() -> tuple[nn.Module, nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    first = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    return first, copy.deepcopy(first), torch.randn(5, 4)


@every_optimizer
def test_gradient_release_is_the_same_training_or_refused(name: str) -> None:
    model, twin, inputs = networks()
    opt = make(name, model.parameters())
    if not claims(name).gradient_release:
        with pytest.raises(ValueError, match="all gradients at once"):
            zoo.release_gradients(opt)
        return
    other = make(name, twin.parameters())
    with zoo.release_gradients(opt):
        for _ in range(3):
            model(inputs).square().sum().backward()
            assert all(p.grad is None for p in model.parameters())
            opt.step()
            twin(inputs).square().sum().backward()
            other.step()
            other.zero_grad()
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(p, q)
    model(inputs).square().sum().backward()
    assert all(p.grad is not None for p in model.parameters())  # removed: gradients stay again


@every_optimizer
def test_released_gradients_accumulate_between_steps(name: str) -> None:
    if not claims(name).gradient_release:
        pytest.skip("its gradients can't be released")
    model, twin, inputs = networks()
    opt, other = make(name, model.parameters()), make(name, twin.parameters())
    with zoo.release_gradients(opt, every=2):
        for index in range(4):
            model(inputs * (index + 1)).square().sum().backward()
            twin(inputs * (index + 1)).square().sum().backward()
            if index % 2:
                other.step()
                other.zero_grad()
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(p, q)


@every_optimizer
def test_a_differentiable_step_lets_gradients_through(name: str) -> None:
    if not claims(name).differentiable:
        pytest.skip("its step is not differentiable")
    start = torch.full((3,), 0.5, dtype=torch.float64, requires_grad=True)
    p = start.clone()
    opt = make(name, [p], differentiable=True, weight_decay=0.1)
    slope = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        p.grad = slope.square()  # not of p itself: the step changes p in place, as torch's does
        opt.step()
    p.sum().backward()
    assert start.grad is not None
    assert torch.isfinite(start.grad).all()
    assert start.grad.abs().sum() > 0


@every_optimizer
def test_capabilities_are_those_of_the_class(name: str) -> None:
    opt = make(name, [nn.Parameter(torch.ones(2, 2))])
    assert opt.capabilities == claims(name)
    assert {"loop", "foreach", "compiled"} <= set(opt.capabilities.engines)
    assert ("blocked" in opt.capabilities.engines) == (opt.capabilities.granularity == zoo.Granularity.ELEMENTWISE)


def test_release_wants_a_sensible_request() -> None:
    p = nn.Parameter(torch.ones(2))
    with pytest.raises(TypeError, match="of the zoo"):
        zoo.release_gradients(torch.optim.SGD([p], lr=1))
    with pytest.raises(ValueError, match="at least 1"):
        zoo.release_gradients(zoo.create_optimizer("sgd", [p]), every=0)
    with pytest.raises(ValueError, match="skip_nonfinite"):
        zoo.release_gradients(zoo.create_optimizer("sgd", [p], skip_nonfinite=True))
    with pytest.raises(ValueError, match="no parameter"):
        zoo.create_optimizer("sgd", [p]).step_parameter(nn.Parameter(torch.ones(1)))
