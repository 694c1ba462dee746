r"""ADOPT. Taniguchi et al., "ADOPT: Modified Adam Can Converge with Any β₂ with the Optimal Rate", 2024, arXiv:2411.02853."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers
from zoo.config import Betas, NonNegative, Positive

from .moments import Moments, MomentsConfig, own_decay, with_decay


class ADOPTConfig(MomentsConfig):
    """Options of ADOPT; defaults are the authors'."""

    betas: Betas = Field((0.9, 0.9999), description="Decay rates β₁, β₂ of the averages of g/√v and of g².")
    eps: Positive = Field(1e-6, description="ε, the least denominator.")
    clip_exponent: NonNegative | None = Field(
        0.25, description="Clip g/√v to ±(steps taken)^this; None: not at all, as in the paper's first version."
    )


class ADOPT(Moments[ADOPTConfig], rule=Granularity.ELEMENTWISE):
    r"""Adam that divides before it averages, by a second moment without the present gradient: converges for any β₂.

    .. math::
        m_t &= β_1 m_{t-1} + (1-β_1) \operatorname{clip}\!\left( \frac{g_t}{\max(\sqrt{v_{t-1}}, ε)},\; ±c_t \right),
        \qquad c_t = (t-1)^{1/4} \\
        θ_t &= θ_{t-1} - γ\, m_t, \qquad v_t = β_2 v_{t-1} + (1-β_2) g_t^2

    The first gradient only sets v₁ = g₁²: that step moves nothing, nor does it decay. State: ``exp_avg``,
    ``exp_avg_sq``: 8 bytes a float32 parameter. A known port clips with exponent 0.333.
    Good for: Adam's tasks where β₂ is hard to choose, generative models.
    """

    def scalars(self, cfg: ADOPTConfig, step: Any) -> Scalars:
        late = helpers.where(step == 1, 0.0, 1.0)
        bound = None if cfg.clip_exponent is None else (step - 1) ** cfg.clip_exponent * late
        return Scalars(
            late=late, bound=bound, weight=1 - cfg.beta2 * late, **vars(own_decay(cfg, self.decay_mode(cfg)))
        )

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor | helpers.Scaled:
        normed = g / helpers.maximum(s.exp_avg_sq.sqrt(), helpers.as_like(c.eps, g))
        if c.bound is None:
            normed = normed.mul_(c.late)
        else:
            bound = helpers.as_like(c.bound, g)
            normed = helpers.minimum(helpers.maximum(normed, -bound), bound)
        helpers.ema_(s.exp_avg, normed, 1 - c.beta1)
        helpers.addcmul_(s.exp_avg_sq.mul_(c.beta2), g, g, c.weight)
        if not c.decays:
            return helpers.scaled(s.exp_avg, c.lr)
        return with_decay(s.exp_avg * helpers.as_like(c.lr, g), p, c.decay * c.late, c)

    def decay_mode(self, cfg: ADOPTConfig) -> str:
        return "l2" if cfg.decay_mode == "l2" else "rule"
