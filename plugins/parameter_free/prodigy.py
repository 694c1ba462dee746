r"""Prodigy: D-adaptation that grows faster. Mishchenko & Defazio, 2023, arXiv:2306.06101."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import Scalars, State, helpers
from zoo.config import Betas, Epsilon, Fraction, Positive

from .estimate import DistanceEstimate, EstimateConfig, kept, ratio_or


class ProdigyConfig(EstimateConfig):
    """Options of Prodigy; defaults are the authors'."""

    betas: Betas = Field((0.9, 0.999), description="Decay rates β₁, β₂ of the moments, both weighted by d.")
    beta3: Fraction | None = Field(None, description="Decay rate of the estimate's sums; None: √β₂.")
    eps: Epsilon = Field(1e-8, description="ε, scaled by d, added to the denominator.")
    d_coef: Positive = Field(1.0, description="Multiplier of the estimate; 0.5 to 2 to make it more or less daring.")
    use_bias_correction: bool = Field(False, description="Correct the moments' bias as Adam does.")
    safeguard_warmup: bool = Field(
        False, description="Leave lr out of the estimate's denominator, for warm-up schedules."
    )


class Prodigy(DistanceEstimate[ProdigyConfig]):
    r"""Adam whose step size is d, an estimate of the distance from the start to the solution.

    .. math::
        \hat d_{t+1} = \frac{\sum_{i \le t} β_3^{t-i}\, d_i^2 γ\, ⟨g_i, θ_0 - θ_i⟩}{\|s_{t+1}\|_1}, \quad
        s_{t+1} = β_3 s_t + d_t^2 γ g_t, \quad θ_{t+1} = θ_t - γ d_t \frac{m_t}{\sqrt{v_t} + d_t ε}

    State: ``exp_avg``, ``exp_avg_sq``, ``s``, ``p0``: 16 bytes a float32 parameter. ``d`` is for reading in every group.
    Good for: training without a learning rate to tune; use lr 1 and a cosine schedule.
    """

    memory = ("d_max", "d_numerator")

    def init_shared(self, cfg: ProdigyConfig) -> dict[str, Any]:
        shared = super().init_shared(cfg)
        return {**shared, "d_max": shared["d"].clone()}

    def init_state(self, p: Tensor, cfg: ProdigyConfig) -> dict[str, Tensor]:
        zeros = {name: helpers.zeros_like(p) for name in ("exp_avg", "exp_avg_sq", "s")}
        return {**zeros, "p0": p.clone()}

    def bias(self, cfg: ProdigyConfig, step: Any) -> Any:
        if not cfg.use_bias_correction:
            return 1.0
        debias1, debias2 = helpers.adam_debias(cfg.beta1, cfg.beta2, step)
        return helpers.sqrt(debias2) / debias1

    def reduce(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Mapping[str, Tensor]:
        beta3 = helpers.sqrt(c.beta2) if c.beta3 is None else c.beta3
        weight = c.d / c.d0  # d/d₀ and not d, so that the sums do not underflow
        dlr = c.d * c.lr * c.bias
        numerator = (g * (s.p0 - p)).sum() * (weight * dlr)
        helpers.add_(s.exp_avg.mul_(c.beta1), g, c.d * (1 - c.beta1))
        helpers.addcmul_(s.exp_avg_sq.mul_(c.beta2), g, g, c.d * c.d * (1 - c.beta2))
        helpers.add_(s.s.mul_(beta3), g, weight * (c.d if c.safeguard_warmup else dlr))
        return {"numerator": numerator, "denominator": s.s.abs().sum() * c.active}

    def combine(self, totals: Mapping[str, Tensor], shared: dict[str, Tensor], c: Scalars) -> Mapping[str, Any]:
        beta3 = helpers.sqrt(c.beta2) if c.beta3 is None else c.beta3
        d = shared["d"]
        numerator = beta3 * shared["d_numerator"] + totals["numerator"]
        d_hat = ratio_or(c.d_coef * numerator, totals["denominator"], d)
        started = torch.where(d == c.d0, torch.maximum(d, d_hat), d)
        shared["d_max"] = torch.maximum(shared["d_max"], d_hat)
        grown = shared["d_max"] if c.growth_rate is None else torch.minimum(shared["d_max"], started * c.growth_rate)
        moved = totals["denominator"] > 0
        shared["d"] = torch.where(moved, grown, d)
        shared["d_numerator"] = torch.where(moved, kept(numerator, shared["d_numerator"]), shared["d_numerator"])
        return {"old_d": d}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        return c.dlr * s.exp_avg / (s.exp_avg_sq.sqrt() + c.d * c.eps)
