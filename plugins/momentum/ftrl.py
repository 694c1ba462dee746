r"""FTRL-Proximal. McMahan et al., "Ad Click Prediction: a View from the Trenches", 2013, doi:10.1145/2487575.2488200."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, LearningRate, NonNegative

from .differentiable import readable


class FTRLConfig(OptimizerConfig):
    """Options of FTRL-Proximal; names are TensorFlow's and the paper's, β the paper's."""

    lr: LearningRate = Field(0.1, description="Learning rate γ (α in the paper).")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient; decoupled; independent.")
    lr_power: float = Field(
        -0.5, le=0.0, allow_inf_nan=False, description="Power by which the sum of g² lowers the rate."
    )
    beta: NonNegative = Field(1.0, description="β, smooths the rate of an element that has few gradients.")
    lambda_1: NonNegative = Field(0.0, description="λ₁ of the L1 penalty: elements below it are exactly zero.")
    lambda_2: NonNegative = Field(0.0, description="λ₂ of the L2 penalty.")


class FTRL(BaseOptimizer[FTRLConfig], rule=Granularity.ELEMENTWISE):
    r"""Follows the regularized leader: the weights that minimize all gradients so far, near where they were, and sparse.

    .. math::
        n_t &= n_{t-1} + g_t^2, \qquad σ_t = (n_t^p - n_{t-1}^p) / γ, \qquad z_t = z_{t-1} + g_t - σ_t θ_{t-1} \\
        θ_t &= \begin{cases} 0 & |z_t| ≤ λ_1 \\
        -\left( \frac{β + n_t^p}{γ} + λ_2 \right)^{-1} (z_t - λ_1 \operatorname{sign} z_t) & \text{else} \end{cases}

    with p = −``lr_power``. State: ``z`` (times γ, so that a schedule may go to zero), ``n`` (its root, so that no
    square overflows): 8 bytes a float32 parameter. The paper starts at θ = 0; here z starts at −β θ, so that any
    weights stay where they are until a gradient comes. Good for: sparse linear models, embeddings.
    """

    counts_steps = False

    def init_state(self, p: Tensor, cfg: FTRLConfig) -> dict[str, Tensor]:
        return {"z": p * -cfg.beta, "n": helpers.zeros_like(p)}

    def scalars(self, cfg: FTRLConfig, step: Any) -> Scalars:
        return Scalars(
            power=-2 * cfg.lr_power,
            plain_root=cfg.lr_power == -0.5,
            l1=cfg.lr * cfg.lambda_1,
            offset=cfg.beta + cfg.lr * cfg.lambda_2,
            active=helpers.where(cfg.lr > 0, 1.0, 0.0),
        )

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        root, p = torch.hypot(s.n, g), readable(p)
        old, rate = (s.n, root) if c.plain_root else (s.n**c.power, root**c.power)
        helpers.add_(s.z, g, c.lr).sub_((rate - old) * p)
        s.n = root
        shrunk = torch.where(s.z.abs() > c.l1, s.z - s.z.sign() * helpers.as_like(c.l1, s.z), 0.0)
        # An element that never had a gradient has no rate, and stays.
        seen = root > 0
        leader = -shrunk / (torch.where(seen, rate, 1.0) + helpers.as_like(c.offset, rate))
        return helpers.scaled(torch.where(seen, p - leader, 0.0), c.active)
