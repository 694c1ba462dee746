r"""Sophia-H. Liu et al., "Sophia: A Scalable Stochastic Second-order Optimizer", 2023, arXiv:2305.14342."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor

from zoo import Scalars, State, helpers
from zoo.config import Betas, Epsilon, LearningRate, Positive

from .hessian import HessianConfig, HessianRule


class SophiaHConfig(HessianConfig):
    """Options of Sophia-H; defaults are the paper's."""

    lr: LearningRate = Field(6e-4, description="Learning rate γ: about 0.8 of AdamW's.")
    betas: Betas = Field((0.96, 0.99), description="Decay rates β₁, β₂ of the moving averages of g and of the Hessian.")
    eps: Epsilon = Field(1e-12, description="ε, the least curvature that is divided by.")
    rho: Positive = Field(0.01, description="ρ, scale of the curvature: larger clips fewer elements.")
    update_period: int = Field(10, ge=1, description="Estimate the Hessian at every n-th step.")


class SophiaH(HessianRule[SophiaHConfig]):
    r"""Momentum divided by a moving average of the Hessian's diagonal, each element clipped to ±1.

    .. math::
        h_t = β_2 h_{t-k} + (1-β_2)\, z ⊙ H_t z \;\text{every k steps}, \qquad
        θ_t = θ_{t-1} - γ\, \operatorname{clip}\!\left(\frac{m_t}{\max(ρ h_t, ε)}, ±1\right)

    State: ``exp_avg``, ``hessian_moment``, ``hessian``: 12 bytes a float32 parameter. ``backward(create_graph=True)`` is
    needed at the steps that estimate only. Good for: language models.
    """

    def init_state(self, p: Tensor, cfg: SophiaHConfig) -> dict[str, Tensor]:
        return {**super().init_state(p, cfg), "hessian_moment": helpers.zeros_like(p)}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        helpers.ema_(s.exp_avg, g, 1 - c.beta1)
        # Between estimates the weight is 0 and the average stands still.
        helpers.ema_(s.hessian_moment, s.hessian, (1 - c.beta2) * c.fresh)
        curvature = helpers.maximum(s.hessian_moment * c.rho, c.eps)
        return helpers.scaled((s.exp_avg / curvature.clamp(min=1e-38)).clamp(-1.0, 1.0), c.lr)
