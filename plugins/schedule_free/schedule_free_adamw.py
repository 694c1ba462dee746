r"""Schedule-free AdamW. Defazio et al., "The Road Less Scheduled", 2024, arXiv:2405.15682."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import Scalars, State, helpers
from zoo.config import Betas, Epsilon, LearningRate

from .base import ScheduleFree, ScheduleFreeConfig


class ScheduleFreeAdamWConfig(ScheduleFreeConfig):
    """Options of schedule-free AdamW; defaults are the authors'."""

    lr: LearningRate = Field(2.5e-3, description="Learning rate γ: 1 to 10 times that of a scheduled AdamW.")
    betas: Betas = Field((0.9, 0.999), description="β₁, the share of the average x in y; β₂, decay rate of g².")
    eps: Epsilon = Field(1e-8, description="ε, added to the denominator.")


class ScheduleFreeAdamW(ScheduleFree[ScheduleFreeAdamWConfig]):
    r"""Adam's preconditioned steps on z, gradients at y between z and its average x: no schedule.

    .. math::
        y_t = (1-β_1) z_t + β_1 x_t, \quad z_{t+1} = z_t - γ_t \left( \frac{g_t}{\sqrt{\hat v_t} + ε} + λ y_t \right), \quad
        x_{t+1} = (1-c_{t+1}) x_t + c_{t+1} z_{t+1}

    with c = γ_max²/Σγ_max². State: ``z``, ``exp_avg_sq``: 8 bytes a float32 parameter. Call ``train()`` and ``eval()``.
    At lr 0 nothing moves (the authors' code still averages). Good for: AdamW without choosing a schedule.
    """

    def init_state(self, p: Tensor, cfg: ScheduleFreeAdamWConfig) -> dict[str, Tensor]:
        return {**super().init_state(p, cfg), "exp_avg_sq": helpers.zeros_like(p)}

    def scalars(self, cfg: ScheduleFreeAdamWConfig, step: Any) -> Scalars:
        scalars = super().scalars(cfg, step)
        scalars.denom_scale = helpers.sqrt(helpers.debias(cfg.beta2, step))
        return scalars

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        helpers.ema_sq_(s.exp_avg_sq, g, c.beta2)
        return self.averaged_step(g / helpers.root_plus(s.exp_avg_sq, c.denom_scale, c.eps), p, s, c)
