r"""AdaMod. Ding et al., "An Adaptive and Momental Bound Method for Stochastic Learning", 2019, arXiv:1910.12249."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers
from zoo.config import DecayMode, Fraction

from .moments import Moments, MomentsConfig


class AdaModConfig(MomentsConfig):
    """Options of AdaMod; defaults are the authors'."""

    beta3: Fraction = Field(0.999, description="β₃, decay rate of the moving average of the learning rates.")
    decay_mode: DecayMode = Field("decoupled", description="decoupled: θ ← θ(1 − γλ) (the authors'); independent; l2.")


class AdaMod(Moments[AdaModConfig], rule=Granularity.ELEMENTWISE):
    r"""Adam whose rate for each weight may not exceed the moving average of its own past.

    .. math::
        η_t &= γ \frac{\sqrt{1-β_2^t}}{1-β_1^t} \frac{1}{\sqrt{v_t} + ε}, \qquad
        s_t = β_3 s_{t-1} + (1-β_3) η_t \\
        θ_t &= θ_{t-1} - \min(η_t, s_t)\, m_t

    State: ``exp_avg``, ``exp_avg_sq``, ``exp_avg_lr``: 12 bytes a float32 parameter. The average starts at 0: a warm-up of
    some 1/(1 − β₃) steps. Good for: transformers and deep networks without a tuned warm-up.
    """

    def init_state(self, p: Tensor, cfg: AdaModConfig) -> dict[str, Tensor]:
        return {**super().init_state(p, cfg), "exp_avg_lr": helpers.zeros_like(p)}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        self.average_(g, s, c)
        rate = (c.step_size * c.denom_scale) / helpers.root_plus(s.exp_avg_sq, 1.0, c.eps)
        helpers.ema_(s.exp_avg_lr, rate, 1 - c.beta3)
        return torch.minimum(rate, s.exp_avg_lr) * s.exp_avg
