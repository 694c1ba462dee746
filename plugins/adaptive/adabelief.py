r"""AdaBelief. Zhuang et al., "AdaBelief Optimizer: Adapting Stepsizes by the Belief in Observed Gradients", 2020, arXiv:2010.07468."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers
from zoo.config import DecayMode, Epsilon

from .moments import Moments, MomentsConfig, rectification


class AdaBeliefConfig(MomentsConfig):
    """Options of AdaBelief; defaults are the authors'."""

    eps: Epsilon = Field(1e-16, description="ε, added to the variance at every step and to its root.")
    decay_mode: DecayMode = Field("decoupled", description="decoupled: θ ← θ(1 − γλ) (the authors'); independent; l2.")
    amsgrad: bool = Field(False, description="Divide by the running maximum of the variance (AMSGrad).")
    rectify: bool = Field(True, description="Rectify the variance of the adaptive step, as RAdam does.")
    degenerated_to_sgd: bool = Field(
        True, description="With rectify: plain momentum steps while the variance is intractable, else none."
    )


class AdaBelief(Moments[AdaBeliefConfig], rule=Granularity.ELEMENTWISE):
    r"""Adam that divides by the spread of the gradient about its average: a gradient as expected takes a large step.

    .. math::
        m_t &= β_1 m_{t-1} + (1-β_1) g_t, \qquad s_t = β_2 s_{t-1} + (1-β_2) (g_t - m_t)^2 + ε \\
        θ_t &= θ_{t-1} - γ\, \frac{m_t / (1-β_1^t)}{\sqrt{s_t / (1-β_2^t)} + ε}

    and rectified as in RAdam by default, as in the authors' code. State: ``exp_avg``, ``exp_avg_var`` (and
    ``max_exp_avg_var`` with ``amsgrad``): 8 (12) bytes a float32 parameter. Good for: GANs, transformers, vision.
    """

    def init_state(self, p: Tensor, cfg: AdaBeliefConfig) -> dict[str, Tensor]:
        names = ("exp_avg", "exp_avg_var", *(["max_exp_avg_var"] if cfg.amsgrad else []))
        return {name: helpers.zeros_like(p) for name in names}

    def scalars(self, cfg: AdaBeliefConfig, step: Any) -> Scalars:
        return Scalars(**vars(super().scalars(cfg, step)), **(vars(rectification(cfg, step)) if cfg.rectify else {}))

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        helpers.ema_(s.exp_avg, g, 1 - c.beta1)
        variance = helpers.ema_sq_(s.exp_avg_var, g - s.exp_avg, c.beta2).add_(c.eps)
        if c.amsgrad:
            variance = helpers.ams_bound_(s.max_exp_avg_var, variance)
        if c.rectify:
            rate = c.adaptive / helpers.root_plus(variance, 1.0, c.eps) + c.plain
            return helpers.scaled(s.exp_avg * rate, c.step_size)
        return helpers.scaled(s.exp_avg, c.step_size, over=helpers.root_plus(variance, c.denom_scale, c.eps))
