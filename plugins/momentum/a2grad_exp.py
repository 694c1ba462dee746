r"""A2Grad-exp. Deng, Cheng & Lan, "Optimal Adaptive and Accelerated SGD", 2018, arXiv:1810.00553."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers
from zoo.config import Fraction

from .a2grad import A2Grad, A2GradConfig


class A2GradExpConfig(A2GradConfig):
    """Options of A2Grad-exp."""

    rho: Fraction = Field(0.5, description="ρ, decay rate of the moving average of the noise.")


class A2GradExp(A2Grad[A2GradExpConfig], rule=Granularity.ELEMENTWISE):
    r"""A2Grad-uni with the largest exponential moving average of the noise, times the step count.

    .. math::
        \tilde v_t = ρ \tilde v_{t-1} + (1-ρ) δ_t^2, \qquad v_t = \max(v_{t-1}, \tilde v_t), \qquad h_t = \sqrt{t\, v_t}

    All else and the deviations are those of A2Grad-uni; ``v_kk`` (ṽ) takes 4 bytes more. Good for: noise that stays.
    """

    noise_states = ("v_k", "v_kk")

    def noise_scale(self, noise_sq: Tensor, s: State, c: Scalars) -> Tensor:
        # Not as a lerp, which is no number once the estimate is infinite.
        s.v_kk = helpers.add_scaled(s.v_kk * helpers.as_like(c.rho, s.v_kk), noise_sq, 1 - c.rho)
        s.v_k = torch.maximum(s.v_k, s.v_kk)
        h: Tensor = s.v_k.sqrt() * helpers.as_like(helpers.sqrt(c.t), s.v_k)
        return h
