r"""Fromage. Bernstein et al., "On the distance between two neural networks and the stability of learning", 2020, arXiv:2002.03432."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import LearningRate

from .differentiable import readable


class FromageConfig(OptimizerConfig):
    """Options of Fromage; defaults are the authors'."""

    lr: LearningRate = Field(1e-2, description="Learning rate γ: the share of its own size by which a layer moves.")
    p_bound: float | None = Field(
        None, ge=1.0, allow_inf_nan=False, description="Largest norm of a tensor, in units of its first; None: any."
    )


class Fromage(BaseOptimizer[FromageConfig], rule=Granularity.TENSOR):
    r"""Every layer moves by γ relative to its norm; the prefactor undoes the growth that orthogonal steps bring.

    .. math:: θ_t = \frac{1}{\sqrt{1+γ^2}} \left( θ_{t-1} - γ \frac{\|θ_{t-1}\|}{\|g_t\|}\, g_t \right)

    State: none; with ``p_bound`` one number a tensor, ``max``. A tensor of zeros takes a plain gradient step. Where the gradient
    is zero nothing moves (the authors' code still applies the prefactor). Good for: GANs and other models
    without tuning: 0.01 is nearly always right.
    """

    counts_steps = False

    def has_step(self, cfg: FromageConfig) -> bool:
        return cfg.p_bound is not None

    def init_state(self, p: Tensor, cfg: FromageConfig) -> dict[str, Tensor]:
        return {} if cfg.p_bound is None else {"max": helpers.zero_scalar(p)}

    def scalars(self, cfg: FromageConfig, step: Any) -> Scalars:
        first = 0.0 if step is None else helpers.where(step == 1, 1.0, 0.0)
        return Scalars(prefactor=1 / helpers.sqrt(1 + cfg.lr * cfg.lr), first=first)

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        p = readable(p)
        size, norm = torch.linalg.vector_norm(p), torch.linalg.vector_norm(g)
        moves = norm > 0
        ratio = torch.where(moves & (size > 0), size / torch.where(moves, norm, 1.0), 1.0)
        shrink = moves.to(p.dtype) * helpers.as_like(1 - c.prefactor, p)
        update: Tensor = p * shrink + g * helpers.as_like(ratio * (c.lr * c.prefactor), g)
        if c.p_bound is None:
            return update
        s.max = s.max * (1 - c.first) + size * (c.p_bound * c.first)
        # A tensor that starts at zero has no size to be bounded by.
        new = p - update
        bound = torch.where(s.max > 0, s.max, torch.inf)
        kept = helpers.as_like(helpers.clip_ratio(torch.linalg.vector_norm(new), bound), new)
        return p - new * kept
