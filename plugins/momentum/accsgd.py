r"""AccSGD. Kidambi et al., "On the insufficiency of existing momentum schemes", 2018, arXiv:1803.05591."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, LearningRate, Positive


class AccSGDConfig(OptimizerConfig):
    """Options of AccSGD; defaults are the authors' code's."""

    lr: LearningRate = Field(1e-3, description="Learning rate γ, the short step.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient (the authors'); decoupled; independent.")
    kappa: Positive = Field(1000.0, description="κ, ratio of the long to the short step.")
    xi: Positive = Field(10.0, description="ξ, statistical advantage over SGD: at most √κ.")
    small_const: float = Field(0.7, gt=0.0, le=1.0, description="c, at most 1.")

    @model_validator(mode="after")
    def _advantage_fits_the_ratio(self) -> AccSGDConfig:
        if self.xi * self.small_const**2 > self.kappa:
            raise ValueError("xi * small_const**2 must not exceed kappa: raise kappa or lower xi")
        return self


class AccSGD(BaseOptimizer[AccSGDConfig], rule=Granularity.ELEMENTWISE):
    r"""Two coupled sequences, one of long steps and one of short ones: acceleration that survives gradient noise.

    .. math::
        w_t &= (1-β)\, w_{t-1} + β \left( θ_{t-1} - \tfrac{γκ}{c} g_t \right), \qquad β = c^2 ξ / κ \\
        θ_t &= ζ (θ_{t-1} - γ g_t) + (1-ζ)\, w_t, \qquad ζ = c / (c + β)

    State: ``momentum_buffer`` (w), 4 bytes a float32 parameter. At lr 0 nothing moves. Good for: small batches and
    problems where momentum brings nothing.
    """

    counts_steps = False

    def init_state(self, p: Tensor, cfg: AccSGDConfig) -> dict[str, Tensor]:
        return {"momentum_buffer": p.clone()}

    def scalars(self, cfg: AccSGDConfig, step: Any) -> Scalars:
        share = cfg.xi * cfg.small_const**2 / cfg.kappa
        short = cfg.small_const / (cfg.small_const + share)
        return Scalars(
            long_lr=cfg.lr * cfg.kappa / cfg.small_const,
            share=share,
            short_lr=short * cfg.lr,
            pull=(1 - short) * helpers.where(cfg.lr > 0, 1.0, 0.0),
        )

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        helpers.ema_(s.momentum_buffer, helpers.add_scaled(p, g, -c.long_lr), c.share)
        return helpers.add_((p - s.momentum_buffer).mul_(c.pull), g, c.short_lr)
