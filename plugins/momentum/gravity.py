r"""Gravity. Bahrami & Pouriyan Zadeh, "Gravity Optimizer: a Kinematic Approach", 2021, arXiv:2101.09192."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import Fraction, LearningRate, NonNegative
from zoo.distributed import is_distributed, keep_own_part_


class GravityConfig(OptimizerConfig):
    """Options of Gravity; defaults are the authors'."""

    lr: LearningRate = Field(0.1, description="Learning rate γ.")
    alpha: NonNegative = Field(0.01, description="α, standard deviation of the first random displacement.")
    beta: Fraction = Field(0.9, description="β, to which the decay rate of the velocity rises.")


class Gravity(BaseOptimizer[GravityConfig], rule=Granularity.TENSOR):
    r"""A ball on a slope: the gradient enters the velocity through a curve that rises, peaks and falls again.

    .. math::
        ζ_t = \frac{g_t}{1 + (g_t \max|g_t|)^2}, \qquad
        V_t = \hat β_t V_{t-1} + (1-\hat β_t) ζ_t, \quad \hat β_t = \frac{β t + 1}{t + 2}, \qquad
        θ_t = θ_{t-1} - γ V_t, \qquad V_0 \sim N(0, (α/γ)^2)

    State: ``v``, 4 bytes a float32 parameter. The random start is drawn from ``seed`` when the state is made, alike for tensors of
    one shape; at lr 0 there is none, nor for elements whose first gradient is 0. ``alpha=0`` does without it. Good for:
    image classifiers with large gradients.
    """

    def init_state(self, p: Tensor, cfg: GravityConfig) -> dict[str, Tensor]:
        velocity = helpers.zeros_like(p)
        if cfg.alpha == 0 or p.is_meta:
            return {"v": velocity}
        generator = torch.Generator().manual_seed(cfg.seed)
        start = torch.randn(p.shape, generator=generator, dtype=torch.float32).mul_(cfg.alpha).to(p.device)
        if is_distributed(velocity):
            keep_own_part_(velocity, start.to(velocity.dtype))
        else:
            velocity.copy_(start)
        return {"v": velocity}

    def scalars(self, cfg: GravityConfig, step: Any) -> Scalars:
        first = helpers.where(step == 1, 1.0, 0.0)
        # With the count on the device it can't be known whether this is the first step.
        return Scalars(
            starts=isinstance(step, Tensor) or step == 1,
            first=first,
            start_scale=helpers.where(cfg.lr > 0, first / helpers.where(cfg.lr > 0, cfg.lr, 1.0), 0.0),
            keep=(cfg.beta * step + 1) / (step + 2),
        )

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        if c.starts:
            # What the state was made with is a displacement: whoever asked for the state may have had another lr.
            s.v.mul_((g != 0) * helpers.as_like(c.start_scale, g) + helpers.as_like(1 - c.first, g))
        ratio = g * largest(g)
        helpers.ema_(s.v, g / (1 + ratio * ratio), 1 - c.keep)
        return helpers.scaled(s.v, c.lr)


@helpers.per_tensor
def largest(x: Tensor) -> Tensor:
    """max |x|, 0-dim; 0 for an empty tensor."""
    return x.abs().amax() if x.numel() else x.new_zeros(())
