r"""Adai. Xie et al., "Adaptive Inertia: Disentangling the Effects of Adaptive Learning Rate and Momentum", 2022, arXiv:2006.15815."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import Betas, DecayMode, LearningRate, Positive

from .moments import filled


class AdaiConfig(OptimizerConfig):
    """Options of Adai; defaults are the authors'."""

    lr: LearningRate = Field(0.1, description="Learning rate γ: as SGD's, since the rate is not adaptive.")
    betas: Betas = Field((0.1, 0.99), description="β₀, how strongly the spread of v sets the inertia; β₂, decay of v.")
    eps: Positive = Field(1e-3, lt=1.0, description="ε: the largest inertia is 1 − ε.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient; decoupled: AdaiW; independent.")


class Adai(BaseOptimizer[AdaiConfig], rule=Granularity.GLOBAL, update=Granularity.ELEMENTWISE):
    r"""Momentum whose inertia, not whose rate, is adaptive: weights with small gradients keep more of their momentum.

    .. math::
        v_t &= β_2 v_{t-1} + (1-β_2) g_t^2, \qquad
        μ_t = \operatorname{clip}\!\left(1 - β_0 \frac{\hat v_t}{\operatorname{mean} \hat v_t},\, 0,\, 1-ε\right) \\
        m_t &= μ_t m_{t-1} + (1-μ_t) g_t, \qquad θ_t = θ_{t-1} - γ\, \frac{m_t}{1 - \prod_{i \le t} μ_i}

    The mean is of all elements of all parameters. State: ``exp_avg``, ``exp_avg_sq``, ``beta1_prod``: 12 bytes a
    float32 parameter. Good for: flat minima, where SGD generalizes better than Adam.
    """

    def init_state(self, p: Tensor, cfg: AdaiConfig) -> dict[str, Tensor]:
        moments = {"exp_avg": helpers.zeros_like(p), "exp_avg_sq": helpers.zeros_like(p)}
        return {**moments, "beta1_prod": filled(p, 1.0)}

    def scalars(self, cfg: AdaiConfig, step: Any) -> Scalars:
        return Scalars(debias=helpers.debias(cfg.beta2, step))

    def reduce(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Mapping[str, Tensor]:
        # Finite squares: an infinite mean would leave no ratio.
        helpers.ema_sq_(s.exp_avg_sq, g, c.beta2).clamp_(max=torch.finfo(g.dtype).max)
        return {"total": s.exp_avg_sq.sum(dtype=torch.float64) / c.debias, "count": count(s.exp_avg_sq)}

    def combine(self, totals: Mapping[str, Tensor], shared: dict[str, Tensor], c: Scalars) -> Mapping[str, Any]:
        total = totals["total"]
        return {"mean": torch.where(total > 0, total, 1.0) / totals["count"].clamp(min=1.0)}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        ratio = s.exp_avg_sq / helpers.as_like(c.mean * c.debias, s.exp_avg_sq)
        inertia = helpers.minimum((1 - ratio * c.beta1).clamp_(min=0.0), 1 - c.eps)
        s.exp_avg = inertia * s.exp_avg + (1 - inertia) * g
        s.beta1_prod = s.beta1_prod * inertia
        return helpers.scaled(s.exp_avg, c.lr, over=1 - s.beta1_prod)


@helpers.per_tensor
def count(x: Tensor) -> Tensor:
    """The number of elements, 0-dim."""
    return x.new_full((), x.numel(), dtype=torch.float64)
