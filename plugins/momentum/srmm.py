r"""SRMM. Lyu, "Stochastic regularized majorization-minimization", 2022, arXiv:2201.01652."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, LearningRate, NonNegative


class SRMMConfig(OptimizerConfig):
    """Options of SRMM; defaults are the author's."""

    lr: LearningRate = Field(1e-3, description="Learning rate γ: one over the curvature of the surrogates.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient; decoupled; independent.")
    beta: NonNegative = Field(0.5, description="Power β by which the weight of a new surrogate falls.")
    memory_length: int | None = Field(
        100, ge=1, description="Steps L after which the averages start anew; None: never."
    )


class SRMM(BaseOptimizer[SRMMConfig], rule=Granularity.ELEMENTWISE):
    r"""Minimizes a weighted average of quadratic models of the loss, one a step: SGD with both sequences averaged.

    .. math::
        \bar g_t &= (1-w_t)\, \bar g_{t-1} + w_t g_t, \qquad \bar θ_t = (1-w_t)\, \bar θ_{t-1} + w_t θ_{t-1} \\
        θ_t &= \bar θ_t - γ \bar g_t, \qquad w_t = (1 + (t-1) \bmod L)^{-β}

    State: ``mov_avg_grad``, ``mov_avg_param``: 8 bytes a float32 parameter. In the author's code, and so in its ports, the first
    weight is :math:`2^{-β}` on averages that start at zero, which shrinks the weights, and the new weights overwrite their own
    average, so that only the gradient is averaged; this is the paper's rule. At lr 0 nothing moves. Good for:
    noisy gradients at a constant learning rate; it wants a larger one than SGD.
    """

    def init_state(self, p: Tensor, cfg: SRMMConfig) -> dict[str, Tensor]:
        return {"mov_avg_grad": helpers.zeros_like(p), "mov_avg_param": helpers.zeros_like(p)}

    def scalars(self, cfg: SRMMConfig, step: Any) -> Scalars:
        since = step - 1 if cfg.memory_length is None else (step - 1) % cfg.memory_length
        return Scalars(weight=(since + 1.0) ** -cfg.beta, active=helpers.where(cfg.lr > 0, 1.0, 0.0))

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        helpers.ema_(s.mov_avg_grad, g, c.weight)
        helpers.ema_(s.mov_avg_param, p, c.weight)
        return helpers.scaled(helpers.add_(p - s.mov_avg_param, s.mov_avg_grad, c.lr), c.active)
