"""Steps for optimizers that ask for more than a backward: closures, graphs, modes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import zoo
from zoo.race.runner import run_race
from zoo.race.stepping import evaluation_weights, state_bytes, train_mode_, training_step
from zoo.race.tasks import TASKS

from .tiny import TINY


def quadratic() -> tuple[nn.Module, Callable[[], Tensor]]:
    model = nn.Linear(3, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(1.0)
    return model, lambda: (model.weight**2).sum()


class Sharp(torch.optim.SGD):
    """Evaluates twice, as sharpness-aware methods do, under no_grad as torch's closure optimizers."""

    needs_closure = True

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        closure()
        for p in self.param_groups[0]["params"]:
            p.add_(1.0)
        loss = closure()
        super().step()
        return loss


def test_an_optimizer_with_a_closure_calls_the_loss_itself_and_the_first_loss_counts() -> None:
    model, loss = quadratic()
    result = training_step(Sharp(model.parameters(), lr=0.5), loss)
    assert result.loss == 3.0
    # 1 + 1 for the perturbation, minus lr times the gradient 2 · 2 there
    assert model.weight.tolist() == [[0.0, 0.0, 0.0]]


def test_the_closures_time_is_not_the_optimizers() -> None:
    model, loss = quadratic()

    def slow() -> Tensor:
        time.sleep(0.05)
        return loss()

    result = training_step(Sharp(model.parameters(), lr=0.5), slow)
    assert result.seconds > 0.1
    assert result.optimizer_seconds < 0.05


class Curious(torch.optim.SGD):
    """Differentiates the gradient."""

    needs_create_graph = True
    curvature: Tensor

    def step(self, closure: Any = None) -> Any:
        (p,) = self.param_groups[0]["params"]
        (self.curvature,) = torch.autograd.grad(p.grad.sum(), p)
        return super().step()


def test_an_optimizer_can_differentiate_the_gradient_and_no_warning_shows() -> None:
    model, loss = quadratic()
    opt = Curious(model.parameters(), lr=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        training_step(opt, loss)
    assert opt.curvature.tolist() == [[2.0, 2.0, 2.0]]


def test_a_plain_optimizer_gets_a_plain_gradient() -> None:
    model, loss = quadratic()
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    assert training_step(opt, loss).loss == 3.0
    assert model.weight.tolist() == [[0.0, 0.0, 0.0]]
    assert not next(model.parameters()).grad.requires_grad  # type: ignore[union-attr]


class TwoModes(torch.optim.SGD):
    """Writes down its mode calls."""

    calls: list[str]

    def train(self) -> None:
        self.calls.append("train")

    def eval(self) -> None:
        self.calls.append("eval")


def test_modes_are_switched_around_an_evaluation_even_if_it_fails() -> None:
    model, _ = quadratic()
    opt = TwoModes(model.parameters(), lr=0.1)
    opt.calls = []
    train_mode_(opt)

    def failing_evaluation() -> None:
        with evaluation_weights(model, opt):
            assert not model.training
            assert not torch.is_grad_enabled()
            assert opt.calls == ["train", "eval"]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing_evaluation()
    assert model.training
    assert opt.calls == ["train", "eval", "train"]


def test_state_is_counted_however_deep_and_shared_tensors_once() -> None:
    model, _ = quadratic()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    shared = torch.zeros(10, dtype=torch.float64)
    opt.state[model.weight] = {"a": shared, "b": [shared, {"c": torch.zeros(3, dtype=torch.bfloat16)}], "step": 4}
    assert state_bytes(opt) == 80 + 6


@pytest.mark.parametrize("name", zoo.list_optimizers())
def test_every_optimizer_can_race(name: str) -> None:
    (lap,) = run_race(TINY, [name], steps=3).laps
    assert lap.status == "finished", lap.message
    assert len(lap.losses) == 3


def test_second_derivatives_go_through_the_attention() -> None:
    (lap,) = run_race(TASKS.get("source"), ["adahessian"], steps=2).laps
    assert lap.status == "finished", lap.message
    assert lap.losses[1] != lap.losses[0]
