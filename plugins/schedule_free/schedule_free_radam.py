r"""Schedule-free RAdam. Defazio et al., "The Road Less Scheduled", 2024, arXiv:2405.15682; Liu et al., arXiv:1908.03265."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import Scalars, State, helpers

from .schedule_free_adamw import ScheduleFreeAdamW, ScheduleFreeAdamWConfig


class ScheduleFreeRAdamConfig(ScheduleFreeAdamWConfig):
    """Options of schedule-free RAdam; defaults are the authors'."""

    warmup_steps: int = Field(0, ge=0, description="Steps of linear warm-up beside the rectification; rarely needed.")
    silent_sgd_phase: bool = Field(
        True, description="Take no steps while the variance is intractable, instead of SGD's."
    )


class ScheduleFreeRAdam(ScheduleFreeAdamW):
    r"""Schedule-free AdamW whose learning rate is rectified as in RAdam: no warm-up to choose either.

    .. math:: γ_t = γ\, r_t, \quad r_t = \sqrt{\frac{(ρ_t-4)(ρ_t-2)ρ_∞}{(ρ_∞-4)(ρ_∞-2)ρ_t}} \text{ where } ρ_t > 4

    State: as schedule-free AdamW, 8 bytes a float32 parameter. Below the threshold the rule is silent, or plain SGD.
    Good for: schedule-free training without any warm-up.
    """

    Config = ScheduleFreeRAdamConfig

    def schedule(self, cfg: Any, step: Any) -> Any:
        r = helpers.rectify(cfg.beta2, step, threshold=4.0, below="none" if cfg.silent_sgd_phase else "momentum")
        return super().schedule(cfg, step) * (r.adaptive + r.plain)

    def scalars(self, cfg: Any, step: Any) -> Scalars:
        scalars = super().scalars(cfg, step)
        scalars.plain = helpers.where(helpers.sma_length(cfg.beta2, step) > 4.0, 0.0, 1.0)
        return scalars

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        helpers.ema_sq_(s.exp_avg_sq, g, c.beta2)
        denom = helpers.root_plus(s.exp_avg_sq, c.denom_scale, c.eps)
        return self.averaged_step(g / denom ** (1 - c.plain), p, s, c)  # where plain is 1, by 1 exactly
