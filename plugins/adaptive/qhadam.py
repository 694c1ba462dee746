r"""QHAdam. Ma & Yarats, "Quasi-hyperbolic momentum and Adam for deep learning", 2019, arXiv:1810.06801."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers
from zoo.config import Real

from .moments import Moments, MomentsConfig


class QHAdamConfig(MomentsConfig):
    """Options of QHAdam; defaults are the authors'."""

    nus: tuple[Real, Real] = Field(
        (1.0, 1.0), description="ν₁, ν₂: shares of the averages against the new g and g²; (1, 1) is Adam."
    )


class QHAdam(Moments[QHAdamConfig], rule=Granularity.ELEMENTWISE):
    r"""Adam with both moments mixed with their newest term, so that old gradients may decay slowly and weigh little.

    .. math::
        θ_t = θ_{t-1} - γ\, \frac{(1-ν_1) g_t + ν_1 \hat m_t}{\sqrt{(1-ν_2) g_t^2 + ν_2 \hat v_t} + ε}

    with m̂ and v̂ corrected for their start at zero. State: ``exp_avg``, ``exp_avg_sq``, kept corrected: 8 bytes a float32
    parameter. The paper recommends ν = (0.7, 1) with β = (0.995, 0.999). Good for: Adam's tasks with a larger β₁.
    """

    def scalars(self, cfg: QHAdamConfig, step: Any) -> Scalars:
        return Scalars(beta1=helpers.debias_beta(cfg.beta1, step), beta2=helpers.debias_beta(cfg.beta2, step))

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        self.average_(g, s, c)
        nu1, nu2 = c.nus
        mean = helpers.add_(g * helpers.as_like(1 - nu1, g), s.exp_avg, nu1)
        # The share first: where ν₂ is 1, a gradient whose square overflows leaves no 0·∞.
        square = helpers.add_(g * helpers.as_like(1 - nu2, g) * g, s.exp_avg_sq, nu2)
        return helpers.scaled(mean, c.lr, over=helpers.root_plus(square, 1.0, c.eps))
