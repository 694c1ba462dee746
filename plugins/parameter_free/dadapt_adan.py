r"""D-Adapt Adan. Defazio & Mishchenko, "Learning-Rate-Free Learning by D-Adaptation", 2023, arXiv:2301.07733."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import Scalars, State, helpers
from zoo.config import Betas3, Epsilon

from .estimate import DistanceEstimate, EstimateConfig, kept, ratio_or


class DAdaptAdanConfig(EstimateConfig):
    """Options of D-Adapt Adan; defaults are the authors'."""

    betas: Betas3 = Field(
        (0.98, 0.92, 0.99), description="β₁ of g, β₂ of its difference, β₃ of the square and the estimate."
    )
    eps: Epsilon = Field(1e-8, description="ε, added to the denominator.")
    no_prox: bool = Field(
        False, description="Decay before the step (as AdamW) instead of dividing by 1 + λγd after it."
    )


class DAdaptAdan(DistanceEstimate[DAdaptAdanConfig]):
    r"""Adan (arXiv:2208.06677) whose step size is the D-adaptation estimate d.

    .. math::
        s_{t+1} &= β_3 s_t + (1-β_3) d_t γ g_t, \qquad q_{t+1} = β_3 q_t + (1-β_3) d_t^2 γ^2 \|g_t\|^2_{A_t^{-1}} \\
        \hat d_{t+1} &= \frac{\|s_{t+1}\|^2_{A_t^{-1}} / (1-β_3) - q_{t+1}}{\|s_{t+1}\|_1}

    State: ``exp_avg``, ``exp_avg_diff``, ``exp_avg_sq``, ``s``, ``pre_grad``: 20 bytes a float32 parameter.
    Good for: Adan without tuning lr.
    """

    memory = ("gsq_weighted",)

    def init_state(self, p: Tensor, cfg: DAdaptAdanConfig) -> dict[str, Tensor]:
        names = ("exp_avg", "exp_avg_diff", "exp_avg_sq", "s", "pre_grad")
        return {name: helpers.zeros_like(p) for name in names}

    def scalars(self, cfg: DAdaptAdanConfig, step: Any) -> Scalars:
        scalars = super().scalars(cfg, step)
        scalars.later = helpers.where(step == 1, 0.0, 1.0)  # there is no difference of gradients at the first step
        return scalars

    def decay_mode(self, cfg: DAdaptAdanConfig) -> str:
        return cfg.decay_mode if cfg.no_prox else "rule"

    def reduce(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Mapping[str, Tensor]:
        dlr = c.d * c.lr
        diff = (g - s.pre_grad) * c.later
        helpers.add_(s.exp_avg.mul_(c.beta1), g, dlr * (1 - c.beta1))
        helpers.add_(s.exp_avg_diff.mul_(c.beta2), diff, dlr * (1 - c.beta2))
        helpers.ema_sq_(s.exp_avg_sq, g + c.beta2 * diff, c.beta3)
        helpers.add_(s.s.mul_(c.beta3), g, dlr * (1 - c.beta3))
        s.pre_grad.copy_(g)
        denom = s.exp_avg_sq.sqrt() + c.eps
        return {
            "g_sq": (g.square() / denom).sum() * (dlr * dlr),
            "s_sq": (s.s.square() / denom).sum() * c.active,
            "s_l1": s.s.abs().sum() * c.active,
        }

    def combine(self, totals: Mapping[str, Tensor], shared: dict[str, Tensor], c: Scalars) -> Mapping[str, Any]:
        d = shared["d"]
        shared["gsq_weighted"] = kept(
            c.beta3 * shared["gsq_weighted"] + (1 - c.beta3) * totals["g_sq"], shared["gsq_weighted"]
        )
        d_hat = ratio_or(totals["s_sq"] / (1 - c.beta3) - shared["gsq_weighted"], totals["s_l1"], d)
        shared["d"] = self.grown(d, d_hat, c)
        return {"old_d": d}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        update = c.active * (s.exp_avg + c.beta2 * s.exp_avg_diff) / (s.exp_avg_sq.sqrt() + c.eps)
        return update if c.no_prox else (update + c.decay * p) / (1 + c.decay)
