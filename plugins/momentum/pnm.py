r"""PNM. Xie et al., "Positive-Negative Momentum: Manipulating Stochastic Gradient Noise", 2021, arXiv:2103.17182."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import Fraction, LearningRate, NonNegative


class PNMConfig(OptimizerConfig):
    """Options of PNM; defaults are the authors'."""

    lr: LearningRate = Field(1e-3, description="Learning rate γ.")
    betas: tuple[Fraction, NonNegative] = Field(
        (0.9, 1.0), description="β₁ of the moving averages, and β₀, the weight of the negative momentum."
    )


class PNM(BaseOptimizer[PNMConfig], rule=Granularity.ELEMENTWISE):
    r"""Two momenta, of the odd and of the even steps: their weighted difference keeps the signal and grows the noise.

    .. math::
        m_t = β_1^2 m_{t-2} + (1-β_1^2) g_t, \qquad
        θ_t = θ_{t-1} - γ\, \frac{(1+β_0)\, m_t - β_0\, m_{t-1}}{\sqrt{(1+β_0)^2 + β_0^2}}

    State: ``pos_momentum`` (of the odd steps), ``neg_momentum`` (of the even ones): 8 bytes a float32 parameter.
    Good for: generalization where batches are large or labels noisy.
    """

    def init_state(self, p: Tensor, cfg: PNMConfig) -> dict[str, Tensor]:
        return {"pos_momentum": helpers.zeros_like(p), "neg_momentum": helpers.zeros_like(p)}

    def scalars(self, cfg: PNMConfig, step: Any) -> Scalars:
        odd, weight, beta0 = (step % 2) * 1.0, 1 - cfg.beta1 * cfg.beta1, cfg.betas[1]
        # A weight of 0 leaves a momentum as it is: whose turn it is changes numbers and no code.
        return Scalars(
            step_size=cfg.lr / helpers.sqrt((1 + beta0) ** 2 + beta0**2),
            odd_weight=weight * odd,
            even_weight=weight * (1 - odd),
            odd_share=odd * (1 + 2 * beta0) - beta0,
            even_share=(1 - odd) * (1 + 2 * beta0) - beta0,
        )

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        helpers.ema_(s.pos_momentum, g, c.odd_weight)
        helpers.ema_(s.neg_momentum, g, c.even_weight)
        direction = s.pos_momentum * helpers.as_like(c.odd_share, g)
        return helpers.scaled(helpers.add_(direction, s.neg_momentum, c.even_share), c.step_size)
