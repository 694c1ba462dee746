r"""Adamax. Kingma & Ba, "Adam: A Method for Stochastic Optimization", section 7.1, 2015, arXiv:1412.6980."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers
from zoo.config import LearningRate

from .moments import Moments, MomentsConfig


class AdamaxConfig(MomentsConfig):
    """Options of Adamax; names, defaults and meaning are torch's."""

    lr: LearningRate = Field(2e-3, description="Learning rate γ: a float or a one-element tensor.")


class Adamax(Moments[AdamaxConfig], rule=Granularity.ELEMENTWISE):
    r"""Adam with the infinity norm: divides by the largest recent gradient, which needs no bias correction.

    .. math::
        m_t &= β_1 m_{t-1} + (1-β_1) g_t, \qquad u_t = \max(β_2 u_{t-1}, |g_t| + ε) \\
        θ_t &= θ_{t-1} - \frac{γ}{1-β_1^t} \frac{m_t}{u_t}

    State: ``exp_avg``, ``exp_inf``: 8 bytes a float32 parameter. Checkpoints are interchangeable with
    ``torch.optim.Adamax``; ε is torch's addition. Good for: sparse gradients, embeddings, speech.
    """

    def init_state(self, p: Tensor, cfg: AdamaxConfig) -> dict[str, Tensor]:
        return {"exp_avg": helpers.zeros_like(p), "exp_inf": helpers.zeros_like(p)}

    def scalars(self, cfg: AdamaxConfig, step: Any) -> Scalars:
        return Scalars(step_size=cfg.lr / helpers.debias(cfg.beta1, step))

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        helpers.ema_(s.exp_avg, g, 1 - c.beta1)
        s.exp_inf = torch.maximum(s.exp_inf.mul_(c.beta2), g.abs().add_(c.eps))
        return helpers.scaled(s.exp_avg, c.step_size, over=s.exp_inf)
