r"""D-Adapt SGD. Defazio & Mishchenko, "Learning-Rate-Free Learning by D-Adaptation", 2023, arXiv:2301.07733."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import Scalars, State, helpers
from zoo.config import DecayMode, Fraction

from .estimate import DistanceEstimate, EstimateConfig, kept, norm_sq, ratio_or


class DAdaptSGDConfig(EstimateConfig):
    """Options of D-Adapt SGD; defaults are the authors'."""

    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient (the authors'); decoupled: scaled by d.")
    momentum: Fraction = Field(0.9, description="Weight of the old iterate in the average that is trained.")


class DAdaptSGD(DistanceEstimate[DAdaptSGDConfig]):
    r"""SGD with iterate averaging whose step size is d over the first gradient's norm.

    .. math::
        s_{t+1} &= s_t + \frac{d_t γ}{\|g_0\|} g_t, \qquad
        \hat d_{t+1} = \frac{2 \sum_{i \le t} \frac{d_i γ}{\|g_0\|} ⟨g_i, s_i⟩}{\|s_{t+1}\|} \\
        θ_{t+1} &= μ θ_t + (1-μ)(θ_0 - s_{t+1})

    State: ``s`` (kept times ‖g₀‖), ``x0``: 8 bytes a float32 parameter. ‖g₀‖ is of the gradient without weight decay,
    as in the authors' code. At lr 0 nothing moves. Good for: SGD without tuning lr.
    """

    counts_steps = True
    memory = ("numerator_weighted", "g0_norm")

    def init_state(self, p: Tensor, cfg: DAdaptSGDConfig) -> dict[str, Tensor]:
        return {"s": helpers.zeros_like(p), "x0": p.clone()}

    def scalars(self, cfg: DAdaptSGDConfig, step: Any) -> Scalars:
        scalars = super().scalars(cfg, step)
        scalars.decays = cfg.decay_mode == "l2"
        return scalars

    def reduce(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Mapping[str, Tensor]:
        numerator = (g * s.s).sum() * (c.d * c.lr)
        helpers.add_(s.s, g, c.d * c.lr)
        raw = g - c.weight_decay * p if c.decays else g
        return {"numerator": numerator, "s_sq": norm_sq(s.s) * c.active, "g_sq": norm_sq(raw) * c.active}

    def combine(self, totals: Mapping[str, Tensor], shared: dict[str, Tensor], c: Scalars) -> Mapping[str, Any]:
        d = shared["d"]
        # The first gradient that is not zero (and not of a group at lr 0) sets the scale.
        shared["g0_norm"] = torch.where(shared["g0_norm"] == 0, totals["g_sq"].sqrt(), shared["g0_norm"])
        shared["numerator_weighted"] = kept(
            shared["numerator_weighted"] + totals["numerator"], shared["numerator_weighted"]
        )
        d_hat = ratio_or(2 * shared["numerator_weighted"], totals["s_sq"].sqrt() * shared["g0_norm"], d)
        shared["d"] = self.grown(d, d_hat, c)
        inverse = ratio_or(torch.ones_like(d), shared["g0_norm"], torch.zeros_like(d))
        return {"old_d": d, "inverse_g0": inverse}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        return c.active * (1 - c.momentum) * (p - s.x0 + s.s * c.inverse_g0)
