r"""D-Adapt AdaGrad. Defazio & Mishchenko, "Learning-Rate-Free Learning by D-Adaptation", 2023, arXiv:2301.07733."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import Scalars, State, helpers
from zoo.config import DecayMode, Epsilon, Fraction

from .estimate import DistanceEstimate, EstimateConfig, kept, ratio_or


class DAdaptAdaGradConfig(EstimateConfig):
    """Options of D-Adapt AdaGrad; defaults are the authors'."""

    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient (the authors'); decoupled: scaled by d.")
    momentum: Fraction = Field(0.0, description="Weight of the old iterate in the average that is trained.")
    eps: Epsilon = Field(0.0, description="ε, added to the denominator, which starts at 10⁻³.")


class DAdaptAdaGrad(DistanceEstimate[DAdaptAdaGradConfig]):
    r"""Dual-averaging AdaGrad whose step size is the D-adaptation estimate d.

    .. math::
        α_{t+1} &= α_t + g_t^2, \quad s_{t+1} = s_t + d_t γ g_t, \quad A_t = \operatorname{diag}(\sqrt{α_t} + ε) \\
        \hat d_{t+1} &= \frac{\|s_{t+1}\|^2_{A^{-1}_{t+1}} - \sum_{i \le t} d_i^2 γ^2 \|g_i\|^2_{A^{-1}_{i+1}}}
            {\|s_{t+1}\|_1}, \quad θ_{t+1} = θ_0 - A_{t+1}^{-1} s_{t+1}

    State: ``alphak``, ``sk``, ``x0``: 12 bytes a float32 parameter. At lr 0 nothing moves. Good for: sparse features.
    """

    memory = ("gsq_weighted",)

    def init_state(self, p: Tensor, cfg: DAdaptAdaGradConfig) -> dict[str, Tensor]:
        alphak = torch.full_like(p, 1e-6, memory_format=torch.preserve_format)
        return {"alphak": alphak, "sk": helpers.zeros_like(p), "x0": p.clone()}

    def reduce(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Mapping[str, Tensor]:
        dlr = c.d * c.lr
        s.alphak.add_(g.square() * c.active)
        denom = s.alphak.sqrt() + c.eps
        helpers.add_(s.sk, g, dlr)
        return {
            "g_sq": (g.square() / denom).sum() * (dlr * dlr),
            "s_sq": (s.sk.square() / denom).sum(),
            "s_l1": s.sk.abs().sum(),
        }

    def combine(self, totals: Mapping[str, Tensor], shared: dict[str, Tensor], c: Scalars) -> Mapping[str, Any]:
        d = shared["d"]
        shared["gsq_weighted"] = kept(shared["gsq_weighted"] + totals["g_sq"], shared["gsq_weighted"])
        d_hat = ratio_or(totals["s_sq"] - shared["gsq_weighted"], totals["s_l1"], d)
        shared["d"] = self.grown(d, d_hat, c)
        return {"old_d": d}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        return c.active * (1 - c.momentum) * (p - s.x0 + s.sk / (s.alphak.sqrt() + c.eps))
