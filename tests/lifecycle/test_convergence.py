"""Every optimizer learns: it lowers the loss of a small network and of a badly scaled regression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import zoo

from .common import every_optimizer, make

LEARNING_RATES: dict[str, float | tuple[float, float]] = {
    "accsgd": 0.3,
    "adabelief": 0.2,
    "adadelta": 10.0,
    "adai": 0.5,
    "adam": 0.02,
    "adamod": 3.0,
    "adamw": 0.02,
    "aggmo": 0.5,
    "asgd": 0.3,
    "kate": 0.05,
    "lars": (3.0, 0.03),  # the regression starts at zero weights, which have no norm to scale a step by
    "lion": 0.01,
    "nero": 0.3,
    "pnm": 0.3,
    "radam": 0.3,
    "schedule_free_radam": 0.1,
    "sgd": 0.3,
    "sgdp": 0.3,
    "sgdw": 0.3,
    "sophia_g": 0.01,
    "srmm": 2.0,
    "tam": 1.0,
}
"""A learning rate for both problems below, or one each; others use ``DEFAULT_FACTOR`` times their default."""

OPTIONS: dict[str, dict[str, float]] = {
    # Their first guesses are made for training of thousands of steps; the problems below have sixty.
    "dadapt_adagrad": {"d0": 1e-2},
    "dog": {"reps_rel": 0.05},
    "ldog": {"reps_rel": 0.05},
    "schedule_free_radam": {"silent_sgd_phase": True},
}
"""Options that suit so short a training."""

DEFAULT_FACTOR = 10.0
STEPS = 60


def network() -> tuple[list[nn.Parameter], Callable[[], Tensor]]:
    """Two classes that no line divides (the sign of a product), a hidden layer of eight, cross entropy."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(48, 4, generator=generator)
    labels = (x[:, 0] * x[:, 1] > 0).float()
    shapes = [(8, 4), (8,), (1, 8), (1,)]
    weights = [nn.Parameter(torch.randn(shape, generator=generator) * 0.5) for shape in shapes]

    def loss() -> Tensor:
        hidden = torch.tanh(nn.functional.linear(x, weights[0], weights[1]))
        logits = nn.functional.linear(hidden, weights[2], weights[3]).squeeze(1)
        return nn.functional.binary_cross_entropy_with_logits(logits, labels)

    return weights, loss


def regression() -> tuple[list[nn.Parameter], Callable[[], Tensor]]:
    """Least squares whose columns differ in scale by ten."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(40, 5, generator=generator) * torch.logspace(-0.7, 0.3, 5)
    y = x @ torch.ones(5, 2) + 0.1 * torch.randn(40, 2, generator=generator)
    weight, bias = nn.Parameter(torch.zeros(2, 5)), nn.Parameter(torch.zeros(2))

    def loss() -> Tensor:
        return ((nn.functional.linear(x, weight, bias) - y) ** 2).mean()

    return [weight, bias], loss


def train(opt: Any, loss_of: Callable[[], Tensor], steps: int) -> float:
    """The loss after training."""

    def closure() -> Tensor:
        opt.zero_grad()
        loss = loss_of()
        loss.backward(create_graph=opt.needs_create_graph)
        return loss

    for _ in range(steps):
        if opt.needs_closure:
            opt.step(closure)
        else:
            closure()
            opt.step()
    opt.zero_grad()
    if hasattr(opt, "eval"):
        opt.eval()
    return float(loss_of().detach())


def learning_rate(name: str, problem: Callable[..., Any]) -> float:
    """The table's, else a multiple of the default; a default near one is a multiplier, and stays."""
    default = zoo.optimizer_config(name).model_fields["lr"].default or 0.01
    rate = LEARNING_RATES.get(name, default if default >= 0.5 else DEFAULT_FACTOR * default)
    return rate[PROBLEMS.index(problem)] if isinstance(rate, tuple) else rate


PROBLEMS = [network, regression]


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
@pytest.mark.parametrize(("problem", "share"), [(network, 0.75), (regression, 0.7)], ids=["network", "regression"])
@every_optimizer
def test_the_loss_falls(name: str, problem: Callable[..., Any], share: float) -> None:
    weights, loss_of = problem()
    before = float(loss_of().detach())
    after = train(
        make(name, weights, lr=learning_rate(name, problem), weight_decay=0.0, **OPTIONS.get(name, {})), loss_of, STEPS
    )
    assert after < share * before, f"{before:.4f} -> {after:.4f}"


def test_the_table_names_known_optimizers_only() -> None:
    assert set(LEARNING_RATES) <= set(zoo.list_optimizers())
