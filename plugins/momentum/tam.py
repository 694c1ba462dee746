r"""TAM. Malviya et al., "Torque-Aware Momentum", 2024, arXiv:2412.18790."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, Epsilon, Fraction, LearningRate

from .differentiable import readable


class TAMConfig(OptimizerConfig):
    """Options of TAM; defaults are the paper's."""

    lr: LearningRate = Field(1e-3, description="Learning rate γ: about twice that of SGD with momentum.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient, as in SGD; decoupled; independent.")
    momentum: Fraction = Field(0.9, description="Momentum factor β.")
    decay_rate: Fraction = Field(0.9, description="Decay rate of the moving average of the cosine.")
    eps: Epsilon = Field(1e-8, description="ε, least share of a gradient that opposes the momentum.")


class TAM(BaseOptimizer[TAMConfig], rule=Granularity.TENSOR):
    r"""Momentum that takes in less of a gradient the more it turns away from the momentum.

    .. math::
        s_t &= ρ s_{t-1} + (1-ρ) \cos(m_{t-1}, g_t), \qquad d_t = (1 + s_t) / 2 \\
        m_t &= β m_{t-1} + (ε + d_t)\, g_t, \qquad θ_t = θ_{t-1} - γ m_t

    The cosine is of whole tensors, ρ is ``decay_rate``. State: ``momentum_buffer``, 4 bytes a float32 parameter, and one number,
    ``s``. A known port multiplies normalized columns instead, without summing, and starts the momentum at the
    first gradient. Good for: large, misaligned gradients and shifting data.
    """

    counts_steps = False

    def init_state(self, p: Tensor, cfg: TAMConfig) -> dict[str, Tensor]:
        return {"momentum_buffer": helpers.zeros_like(p), "s": helpers.zero_scalar(p)}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        cosine = (unit(readable(s.momentum_buffer)) * unit(g)).sum()
        helpers.ema_(s.s, cosine, 1 - c.decay_rate)
        share = helpers.as_like((1 + s.s) / 2 + c.eps, g)
        return helpers.scaled(s.momentum_buffer.mul_(c.momentum).add_(g * share), c.lr)


def unit(x: Tensor) -> Tensor:
    """x/‖x‖; zeros for zeros."""
    norm = torch.linalg.vector_norm(x)
    return x / torch.where(norm > 0, norm, 1.0)
