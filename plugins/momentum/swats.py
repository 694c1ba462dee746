r"""SWATS. Keskar & Socher, "Improving Generalization Performance by Switching from Adam to SGD", 2017, arXiv:1712.07628."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import Betas, DecayMode, Epsilon, LearningRate, NonNegative


class SWATSConfig(OptimizerConfig):
    """Options of SWATS; defaults are the paper's."""

    lr: LearningRate = Field(1e-3, description="Learning rate γ of Adam; SGD's is a multiple of it that is found.")
    betas: Betas = Field((0.9, 0.999), description="Decay rates β₁, β₂ of the moments; β₁ is SGD's momentum too.")
    eps: Epsilon = Field(1e-9, description="ε, added to the denominator.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient; decoupled; independent.")
    tolerance: NonNegative = Field(1e-9, description="Switch when estimate and average of SGD's rate differ by less.")


class SWATS(BaseOptimizer[SWATSConfig], rule=Granularity.GLOBAL, update=Granularity.ELEMENTWISE):
    r"""Adam until the step of SGD that it amounts to has settled, then SGD with momentum at that rate.

    .. math::
        p_t &= γ \hat m_t / (\sqrt{\hat v_t} + ε), \qquad r_t = \frac{p_t^\top p_t}{p_t^\top g_t}, \qquad
        Λ_t = \frac{1-β_2}{1-β_2^t} \sum_{i \le t} β_2^{t-i} r_i \\
        θ_t &= θ_{t-1} - p_t \quad \text{until } |Λ_t - r_t| < \text{tolerance},\ t > 1; \qquad
        \text{then } θ_t = θ_{t-1} - (1-β_1)\, Λ\, b_t, \quad b_t = β_1 b_{t-1} + g_t

    Sums run over all parameters. ε is added before the bias correction, as in the paper. The average of r/γ, and Λ/γ once it is
    found (else 0), stand in every group as ``rate_average`` and ``sgd_rate``, so a schedule goes on after the switch.
    State: ``exp_avg``, ``exp_avg_sq``, ``momentum_buffer``: 12 bytes a float32 parameter. Ports switch a whole group when
    one of its tensors settles. Good for: Adam's start with SGD's generalization.
    """

    def init_shared(self, cfg: SWATSConfig) -> dict[str, Any]:
        return {name: torch.zeros((), dtype=torch.float64) for name in ("rate_average", "rate_weight", "sgd_rate")}

    def init_state(self, p: Tensor, cfg: SWATSConfig) -> dict[str, Tensor]:
        return {name: helpers.zeros_like(p) for name in ("exp_avg", "exp_avg_sq", "momentum_buffer")}

    def scalars(self, cfg: SWATSConfig, step: Any) -> Scalars:
        debias1, debias2 = helpers.adam_debias(cfg.beta1, cfg.beta2, step)
        return Scalars(correction=helpers.sqrt(debias2) / debias1, active=helpers.where(cfg.lr > 0, 1.0, 0.0))

    def reduce(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Mapping[str, Tensor]:
        helpers.ema_(s.exp_avg, g, 1 - c.beta1)
        helpers.ema_sq_(s.exp_avg_sq, g, c.beta2)
        direction = adam_direction(s, c)
        return {"own": direction.square().sum() * c.active, "common": (direction * g).sum() * c.active}

    def combine(self, totals: Mapping[str, Tensor], shared: dict[str, Tensor], c: Scalars) -> Mapping[str, Any]:
        own, common = (totals[name].to(torch.float64) for name in ("own", "common"))
        usable = (common != 0) & torch.isfinite(own) & torch.isfinite(common)
        rate = own / torch.where(usable, common, 1.0)
        average, weight = (
            torch.where(usable, shared[name] * c.beta2 + new * (1 - c.beta2), shared[name])
            for name, new in (("rate_average", rate), ("rate_weight", 1.0))
        )
        settled = average / torch.where(weight > 0, weight, 1.0)
        switch = usable & (shared["rate_weight"] > 0) & (settled > 0) & ((settled - rate).abs() * c.lr < c.tolerance)
        in_force = shared["sgd_rate"]  # the step at which the rate is found is still Adam's
        shared.update(rate_average=average, rate_weight=weight)
        shared["sgd_rate"] = torch.where(switch & (in_force == 0), settled, in_force)
        return {"rate": in_force}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        switched = c.rate > 0
        momentum = s.momentum_buffer.mul_(c.beta1).add_(g).mul_(switched)
        sgd = momentum * helpers.as_like(c.rate * ((1 - c.beta1) * c.lr), momentum)
        return torch.where(switched, sgd, adam_direction(s, c) * helpers.as_like(c.lr, g))

    def learning_rate(self, group: Mapping[str, Any]) -> Any:
        return group["lr"] * torch.where(group["sgd_rate"] > 0, group["sgd_rate"], 1.0)


def adam_direction(s: State, c: Scalars) -> Tensor:
    """Adam's step at γ = 1; 0 where there was no gradient yet."""
    root = s.exp_avg_sq.sqrt() + helpers.as_like(c.eps, s.exp_avg_sq)
    direction: Tensor = s.exp_avg * helpers.as_like(c.correction, s.exp_avg) / torch.where(root > 0, root, 1.0)
    return direction
