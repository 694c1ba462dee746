r"""Yogi. Zaheer et al., "Adaptive Methods for Nonconvex Optimization", 2018, NeurIPS."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers
from zoo.config import Epsilon, LearningRate, NonNegative

from .moments import Moments, MomentsConfig, filled


class YogiConfig(MomentsConfig):
    """Options of Yogi; defaults are the paper's."""

    lr: LearningRate = Field(1e-2, description="Learning rate γ: a float or a one-element tensor.")
    eps: Epsilon = Field(1e-3, description="ε, added to the denominator: sets how adaptive the step is.")
    initial_accumulator: NonNegative = Field(1e-6, description="Start of the second moment.")


class Yogi(Moments[YogiConfig], rule=Granularity.ELEMENTWISE):
    r"""Adam whose second moment moves by an amount that depends on g² alone, so it never falls in a hurry.

    .. math::
        v_t &= v_{t-1} - (1-β_2) \operatorname{sign}(v_{t-1} - g_t^2)\, g_t^2 \\
        θ_t &= θ_{t-1} - γ\, \frac{m_t / (1-β_1^t)}{\sqrt{v_t / (1-β_2^t)} + ε}

    State: ``exp_avg``, ``exp_avg_sq``: 8 bytes a float32 parameter. A known port starts the first moment at the
    second's start too, which moves weights without a gradient; here it starts at 0.
    Good for: sparse or heavy-tailed gradients, where Adam's rate jumps up.
    """

    def init_state(self, p: Tensor, cfg: YogiConfig) -> dict[str, Tensor]:
        return {"exp_avg": helpers.zeros_like(p), "exp_avg_sq": filled(p, cfg.initial_accumulator)}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        helpers.ema_(s.exp_avg, g, 1 - c.beta1)
        # Finite squares: where both are infinite, their difference has no sign.
        square = g.square().clamp_(max=torch.finfo(g.dtype).max)
        sign = (s.exp_avg_sq - square).sign_()
        helpers.addcmul_(s.exp_avg_sq, sign, square, c.beta2 - 1)
        return helpers.scaled(s.exp_avg, c.step_size, over=helpers.root_plus(s.exp_avg_sq, c.denom_scale, c.eps))
