r"""LARS. You, Gitman & Ginsburg, "Large Batch Training of Convolutional Networks", 2017, arXiv:1708.03888."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers
from zoo.config import Epsilon, LearningRate, NonNegative, Positive

from .differentiable import readable
from .sgd import SGD, SGDConfig


class LARSConfig(SGDConfig):
    """Options of LARS: those of SGD, and the trust ratio's, with the paper's momentum and coefficient."""

    lr: LearningRate = Field(1.0, description="Global learning rate γ; grows with the batch size.")
    momentum: NonNegative = Field(0.9, description="Momentum factor μ.")
    trust_coeff: Positive = Field(1e-3, description="η, how far a layer may move relative to its size.")
    eps: Epsilon = Field(1e-8, description="ε, added to the denominator of the ratio.")
    trust_clip: bool = Field(False, description="LARC: the ratio only ever lowers the learning rate, min(ratio/γ, 1).")
    always_adapt: bool = Field(
        True, description="Adapt every layer (the paper's); False: only those with weight decay."
    )


class LARS(SGD, rule=Granularity.TENSOR):
    r"""SGD with momentum whose learning rate is proportional to ‖θ‖/‖g‖, layer by layer.

    .. math::
        r_t = \frac{η \|θ_{t-1}\|}{\|g_t\| + λ \|θ_{t-1}\| + ε}, \qquad
        b_t = μ b_{t-1} + r_t (g_t + λ θ_{t-1}), \qquad θ_t = θ_{t-1} - γ b_t

    A layer of zeros, or without gradient, has r = 1. With decoupled decay λ is left out of the rule. State: as SGD.
    Good for: convolutional networks on very large batches.
    """

    Config = LARSConfig
    supports_sparse = False
    fused_kernel = None

    def scalars(self, cfg: Any, step: Any) -> Scalars:
        scalars = super().scalars(cfg, step)
        scalars.decays = cfg.weight_decay != 0 and cfg.decay_mode == "l2"
        scalars.adapts = cfg.always_adapt or cfg.weight_decay != 0
        return scalars

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        size, norm = torch.linalg.vector_norm(readable(p)), torch.linalg.vector_norm(g)
        if c.decays:
            g = helpers.l2_decay(g, p, c.weight_decay)
        if c.adapts:
            defined = (size > 0) & (norm > 0)
            whole = norm + size * c.weight_decay if c.decays else norm
            ratio = torch.where(defined, size * c.trust_coeff / (torch.where(defined, whole, 1.0) + c.eps), 1.0)
            g = g * helpers.as_like((ratio / c.lr).clamp(max=1.0) if c.trust_clip else ratio, g)
        return super().update(g, p, s, c)

    def decay_mode(self, cfg: Any) -> str:
        # The ratio is made of the gradient without the decay, so the rule itself adds the decay.
        return "rule" if cfg.decay_mode == "l2" else str(cfg.decay_mode)
