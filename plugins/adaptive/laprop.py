r"""LaProp. Ziyin, Wang & Ueda, "LaProp: Separating Momentum and Adaptivity in Adam", 2020, arXiv:2002.04839."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers
from zoo.config import DecayMode, Epsilon, LearningRate

from .moments import Moments, MomentsConfig, own_decay, with_decay


class LaPropConfig(MomentsConfig):
    """Options of LaProp; defaults are the authors'."""

    lr: LearningRate = Field(4e-4, description="Learning rate γ: a float or a one-element tensor.")
    eps: Epsilon = Field(1e-15, description="ε, added to the denominator.")
    decay_mode: DecayMode = Field("decoupled", description="decoupled: θ ← θ(1 − γλ) after the step; independent; l2.")
    amsgrad: bool = Field(False, description="Divide by the running maximum of the second moment (AMSGrad).")


class LaProp(Moments[LaPropConfig], rule=Granularity.ELEMENTWISE):
    r"""Adam that divides before it averages, so that β₁ and β₂ may be chosen apart.

    .. math::
        m_t = β_1 m_{t-1} + (1-β_1) \frac{g_t}{\sqrt{v_t / (1-β_2^t)} + ε}, \qquad
        θ_t = θ_{t-1} - γ\, \frac{m_t}{1-β_1^t}

    State: ``exp_avg``, ``exp_avg_sq`` (and ``max_exp_avg_sq`` with ``amsgrad``): 8 (12) bytes a float32 parameter.
    The authors' code averages γ times the divided gradient, which differs only while γ changes; decoupled decay acts on
    the weights after the step, as there, but scaled by γ.
    Good for: small β₂, noisy objectives, reinforcement learning.
    """

    def init_state(self, p: Tensor, cfg: LaPropConfig) -> dict[str, Tensor]:
        bound = {"max_exp_avg_sq": helpers.zeros_like(p)} if cfg.amsgrad else {}
        return {**super().init_state(p, cfg), **bound}

    def scalars(self, cfg: LaPropConfig, step: Any) -> Scalars:
        return Scalars(**vars(super().scalars(cfg, step)), **vars(own_decay(cfg, self.decay_mode(cfg))))

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor | helpers.Scaled:
        helpers.ema_sq_(s.exp_avg_sq, g, c.beta2)
        second = helpers.ams_bound_(s.max_exp_avg_sq, s.exp_avg_sq) if c.amsgrad else s.exp_avg_sq
        helpers.ema_(s.exp_avg, g / helpers.root_plus(second, c.denom_scale, c.eps), 1 - c.beta1)
        if not c.decays:
            return helpers.scaled(s.exp_avg, c.step_size)
        update = s.exp_avg * helpers.as_like(c.step_size, g)
        return with_decay(update, p - update, c.decay, c)

    def decay_mode(self, cfg: LaPropConfig) -> str:
        return "l2" if cfg.decay_mode == "l2" else "rule"
