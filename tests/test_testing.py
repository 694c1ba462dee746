"""The checks for plugin authors find what they are made to find."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.testing import CHECKS, CheckFailure, check_optimizer


class Sound(BaseOptimizer[OptimizerConfig], rule=Granularity.ELEMENTWISE):
    """Momentum, rightly done."""

    def init_state(self, p: Tensor, cfg: OptimizerConfig) -> dict[str, Tensor]:
        return {"exp_avg": helpers.zeros_like(p)}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Any:
        helpers.ema_(s.exp_avg, g, 0.1)
        return helpers.scaled(s.exp_avg, c.lr)


class NeverMoves(Sound):
    """Subtracts nothing."""

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Any:
        return torch.zeros_like(g)


class IgnoresLr(Sound):
    """Moves at lr 0."""

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Any:
        return g * 1e-3


class DividesByZero(Sound):
    """0/0 at a zero gradient."""

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Any:
        return c.lr * g / g.abs()


class WritesTheGradient(Sound):
    """Changes the caller's gradient."""

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Any:
        return g.mul_(c.lr)


class LooksAtTheWhole(Sound):
    """Declares less than it looks at: a norm in an elementwise rule."""

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Any:
        return c.lr * g / (1 + torch.linalg.vector_norm(g))


class Forgets(Sound):
    """Keeps a momentum where no checkpoint looks: on the class."""

    memory: dict[int, Tensor] = {}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Any:
        before = self.memory.get(id(s.exp_avg), torch.zeros_like(g))
        self.memory[id(s.exp_avg)] = now = before * 0.9 + g
        return c.lr * now


class HelplessConfig(OptimizerConfig):
    """An option without help."""

    gain: float = 1.0


class Helpless(Sound):
    """Has an option that nobody explains."""

    Config = HelplessConfig


def test_a_sound_optimizer_passes_every_check() -> None:
    report = check_optimizer(Sound, lr=0.1)
    assert report.passed == list(CHECKS)
    assert report.failed == {}


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (NeverMoves, "a_step_moves_parameters_and_leaves_gradients"),
        (IgnoresLr, "lr_zero_moves_nothing"),
        (DividesByZero, "zero_gradients_stay_finite"),
        (WritesTheGradient, "a_step_moves_parameters_and_leaves_gradients"),
        (LooksAtTheWhole, "engines_agree"),
        (Forgets, "saved_and_loaded_is_never_stopped"),
        (Helpless, "every_option_has_help"),
        (NeverMoves, "least_squares_are_solved"),
    ],
)
def test_a_fault_is_found_and_named(broken: type[Sound], check: str) -> None:
    report = check_optimizer(broken, lr=0.1, raises=False)
    assert check in report.failed


def test_failures_are_raised_with_their_names_and_may_be_skipped() -> None:
    with pytest.raises(CheckFailure, match=r"Helpless: 13 checks passed, 1 failed\n  every_option_has_help: .*gain"):
        check_optimizer(Helpless, lr=0.1)
    assert check_optimizer(Helpless, lr=0.1, skip=["every_option_has_help"]).failed == {}
    with pytest.raises(ValueError, match="no checks are called nonsense"):
        check_optimizer(Sound, skip=["nonsense"])


@pytest.mark.parametrize("name", ["adam", "lion", "sgd", "prodigy", "adahessian"])
def test_registered_optimizers_are_checked_by_name(name: str) -> None:
    check_optimizer(name, lr={"adam": 0.05, "lion": 0.02, "sgd": 0.1}.get(name))
