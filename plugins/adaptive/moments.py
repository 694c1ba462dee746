"""What rules with Adam's two moments share: options, states, bias corrections, decay at a place of their own."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import Betas, DecayMode, Epsilon, LearningRate


class MomentsConfig(OptimizerConfig):
    """Options of rules with Adam's two moments; defaults are Adam's."""

    lr: LearningRate = Field(1e-3, description="Learning rate γ: a float or a one-element tensor.")
    betas: Betas = Field((0.9, 0.999), description="Decay rates β₁, β₂ of the moving averages of g and g².")
    eps: Epsilon = Field(1e-8, description="ε, added to the denominator.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient (the authors'); decoupled; independent.")


C = TypeVar("C", bound=MomentsConfig)


class Moments(BaseOptimizer[C], rule=Granularity.ELEMENTWISE):
    """Base of rules with moving averages of the gradient and of its square, both corrected for their start at zero.

    Scalars: ``step_size`` is γ/(1 − β₁ᵗ), ``denom_scale`` is √(1 − β₂ᵗ).
    """

    def init_state(self, p: Tensor, cfg: C) -> dict[str, Tensor]:
        return {"exp_avg": helpers.zeros_like(p), "exp_avg_sq": helpers.zeros_like(p)}

    def scalars(self, cfg: C, step: Any) -> Scalars:
        debias1, debias2 = helpers.adam_debias(cfg.beta1, cfg.beta2, step)
        return Scalars(step_size=cfg.lr / debias1, denom_scale=helpers.sqrt(debias2))

    @staticmethod
    def average_(g: Tensor, s: State, c: Scalars) -> None:
        """m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g² in place."""
        helpers.ema_(s.exp_avg, g, 1 - c.beta1)
        helpers.ema_sq_(s.exp_avg_sq, g, c.beta2)


def rectification(cfg: Any, step: Any) -> Scalars:
    """``adaptive`` = r_t·√(1 − β₂ᵗ) and ``plain``, of which one is 0, as RAdam and AdaBelief rectify their step."""
    r = helpers.rectify(cfg.beta2, step, below="momentum" if cfg.degenerated_to_sgd else "none")
    return Scalars(adaptive=r.adaptive * helpers.sqrt(helpers.debias(cfg.beta2, step)), plain=r.plain)


def filled(p: Tensor, value: helpers.Scalar) -> Tensor:
    """A state tensor of one value; of a complex parameter, both parts have it."""
    state = helpers.zeros_like(p)
    real = torch.view_as_real(state) if p.is_complex() else state
    real.fill_(value.detach().reshape(()) if isinstance(value, Tensor) else value)
    return state


def own_decay(cfg: OptimizerConfig, mode: str) -> Scalars:
    """What :func:`with_decay` needs to know, for rules that decay the weights themselves (``mode`` "rule")."""
    return Scalars(decays=mode == "rule" and cfg.weight_decay != 0, cautiously=cfg.cautious_weight_decay)


def with_decay(update: Tensor, p: Tensor, fraction: helpers.Scalar, c: Scalars) -> Tensor:
    """The update and ``fraction`` of the weights, everywhere or where update and weights agree in sign."""
    return update + (helpers.cautious_decay(p, update, fraction) if c.cautiously else p * fraction)
