r"""KATE. Choudhury et al., "Remove that Square Root: A New Efficient Scale-Invariant Version of AdaGrad", 2024, arXiv:2403.02648."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import Epsilon, LearningRate, NonNegative


class KATEConfig(OptimizerConfig):
    """Options of KATE; defaults are the authors'."""

    lr: LearningRate = Field(1e-3, description="Learning rate γ.")
    eta: NonNegative = Field(0.0, description="η, weight of g² in the numerator.")
    eps: Epsilon = Field(1e-8, description="ε, added to the sum of squares at every step, as in the authors' code.")


class KATE(BaseOptimizer[KATEConfig], rule=Granularity.ELEMENTWISE):
    r"""AdaGrad without the root: the step does not change when the data are rescaled.

    .. math::
        b_t^2 = b_{t-1}^2 + g_t^2 + ε, \qquad m_t^2 = m_{t-1}^2 + η g_t^2 + \frac{g_t^2}{b_t^2}, \qquad
        θ_t = θ_{t-1} - γ\, \frac{m_t}{b_t^2}\, g_t

    State: ``m``, ``b``: 8 bytes a float32 parameter. Good for: badly scaled features, generalized linear models.
    """

    counts_steps = False

    def init_state(self, p: Tensor, cfg: KATEConfig) -> dict[str, Tensor]:
        return {"m": helpers.zeros_like(p), "b": helpers.zeros_like(p)}

    def scalars(self, cfg: KATEConfig, step: Any) -> Scalars:
        return Scalars(root_eps=helpers.sqrt(cfg.eps), root_eta=helpers.sqrt(cfg.eta), plain=cfg.eta == 0)

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        # Roots are kept and added as legs of a triangle: no square overflows.
        floor = torch.ones_like(s.b) * c.root_eps
        s.b = torch.hypot(torch.hypot(s.b, g), floor)
        size = torch.where(s.b > 0, s.b, 1.0)
        ratio = g / size
        m = s.m if c.plain else torch.hypot(s.m, g * c.root_eta)
        s.m = torch.hypot(m, ratio)
        return helpers.scaled(s.m * ratio, c.lr, over=size)
