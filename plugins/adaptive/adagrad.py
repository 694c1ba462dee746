r"""Adagrad. Duchi, Hazan & Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization", 2011."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, Epsilon, LearningRate, NonNegative
from zoo.engines.fused import FusedAdagrad

from .moments import filled


class AdagradConfig(OptimizerConfig):
    """Options of Adagrad; names, defaults and meaning are torch's."""

    lr: LearningRate = Field(1e-2, description="Learning rate γ: a float or a one-element tensor.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient (torch's); decoupled; independent.")
    lr_decay: NonNegative = Field(0.0, description="η: the learning rate falls as 1/(1 + (t−1)η).")
    initial_accumulator_value: NonNegative = Field(0.0, description="Start of the sum of squares.")
    eps: Epsilon = Field(1e-10, description="ε, added to the denominator.")


class Adagrad(BaseOptimizer[AdagradConfig], rule=Granularity.ELEMENTWISE):
    r"""Divides the gradient by the root of the sum of all squares so far: what rarely moves, moves far.

    .. math::
        G_t = G_{t-1} + g_t^2, \qquad θ_t = θ_{t-1} - \frac{γ}{1 + (t-1) η}\, \frac{g_t}{\sqrt{G_t} + ε}

    State: ``sum``, 4 bytes a float32 parameter. Checkpoints are interchangeable with ``torch.optim.Adagrad``.
    Sparse gradients touch only their own rows. Good for: sparse features, embeddings, convex problems.
    """

    supports_sparse = True
    fused_kernel = FusedAdagrad()

    def init_state(self, p: Tensor, cfg: AdagradConfig) -> dict[str, Tensor]:
        return {"sum": filled(p, cfg.initial_accumulator_value)}

    def scalars(self, cfg: AdagradConfig, step: Any) -> Scalars:
        return Scalars(rate=cfg.lr / (1 + (step - 1) * cfg.lr_decay))

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        if g.layout is torch.sparse_coo:
            g = g.coalesce()  # each row once: squares of parts are not parts of a square
            s.sum.add_(g * g)
            values = g.values() / helpers.root_plus(s.sum.sparse_mask(g).values(), 1.0, c.eps)
            return helpers.scaled(torch.sparse_coo_tensor(g.indices(), values, g.shape, is_coalesced=True), c.rate)
        helpers.addcmul_(s.sum, g, g)
        return helpers.scaled(g, c.rate, over=helpers.root_plus(s.sum, 1.0, c.eps))
