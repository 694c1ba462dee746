r"""D-Adapt Adam. Defazio & Mishchenko, "Learning-Rate-Free Learning by D-Adaptation", 2023, arXiv:2301.07733."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import Scalars, State, helpers
from zoo.config import Betas, DecayMode, Epsilon

from .estimate import DistanceEstimate, EstimateConfig, kept, ratio_or


class DAdaptAdamConfig(EstimateConfig):
    """Options of D-Adapt Adam; defaults are the authors'."""

    betas: Betas = Field((0.9, 0.999), description="Decay rates β₁, β₂ of the moments.")
    eps: Epsilon = Field(1e-8, description="ε, added to the denominator.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient; decoupled: scaled by d and lr.")
    use_bias_correction: bool = Field(False, description="Correct the moments' bias as Adam does.")


class DAdaptAdam(DistanceEstimate[DAdaptAdamConfig]):
    r"""Adam whose step size is d, a lower bound on the distance to the solution that only grows.

    .. math::
        s_{t+1} &= \sqrt{β_2}\, s_t + (1-\sqrt{β_2})\, d_t γ g_t, \qquad
        r_{t+1} = \sqrt{β_2}\, r_t + (1-\sqrt{β_2})\, d_t γ ⟨g_t, s_t⟩_{A_t^{-1}} \\
        \hat d_{t+1} &= \frac{r_{t+1}}{(1-\sqrt{β_2}) \|s_{t+1}\|_1}, \qquad d_{t+1} = \max(d_t, \hat d_{t+1})

    State: ``exp_avg``, ``exp_avg_sq``, ``s``: 12 bytes a float32 parameter. Good for: Adam without tuning lr.
    """

    memory = ("numerator_weighted",)

    def init_state(self, p: Tensor, cfg: DAdaptAdamConfig) -> dict[str, Tensor]:
        return {name: helpers.zeros_like(p) for name in ("exp_avg", "exp_avg_sq", "s")}

    def bias(self, cfg: DAdaptAdamConfig, step: Any) -> Any:
        if not cfg.use_bias_correction:
            return 1.0
        debias1, debias2 = helpers.adam_debias(cfg.beta1, cfg.beta2, step)
        return helpers.sqrt(debias2) / debias1

    def reduce(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Mapping[str, Tensor]:
        root, dlr = helpers.sqrt(c.beta2), c.d * c.lr * c.bias
        numerator = dlr * (g * s.s / (s.exp_avg_sq.sqrt() + c.eps)).sum()
        helpers.add_(s.exp_avg.mul_(c.beta1), g, dlr * (1 - c.beta1))
        helpers.ema_sq_(s.exp_avg_sq, g, c.beta2)
        helpers.add_(s.s.mul_(root), g, dlr * (1 - root))
        return {"numerator": numerator, "denominator": s.s.abs().sum() * c.active}

    def combine(self, totals: Mapping[str, Tensor], shared: dict[str, Tensor], c: Scalars) -> Mapping[str, Any]:
        root, d = helpers.sqrt(c.beta2), shared["d"]
        shared["numerator_weighted"] = kept(
            root * shared["numerator_weighted"] + (1 - root) * totals["numerator"], shared["numerator_weighted"]
        )
        d_hat = ratio_or(shared["numerator_weighted"], (1 - root) * totals["denominator"], d)
        shared["d"] = self.grown(d, d_hat, c)
        return {"old_d": d}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        return c.active * s.exp_avg / (s.exp_avg_sq.sqrt() + c.eps)
