r"""AdaPNM. Xie et al., "Positive-Negative Momentum: Manipulating Stochastic Gradient Noise", 2021, arXiv:2103.17182."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, Epsilon, Fraction, LearningRate, NonNegative


class AdaPNMConfig(OptimizerConfig):
    """Options of AdaPNM; defaults are the authors'."""

    lr: LearningRate = Field(1e-3, description="Learning rate γ: a float or a one-element tensor.")
    betas: tuple[Fraction, Fraction, NonNegative] = Field(
        (0.9, 0.999, 1.0), description="β₁, β₂ of the moving averages, and β₀, the weight of the negative momentum."
    )
    eps: Epsilon = Field(1e-8, description="ε, added to the denominator.")
    decay_mode: DecayMode = Field("decoupled", description="decoupled: θ ← θ(1 − γλ) (the authors'); independent; l2.")
    amsgrad: bool = Field(True, description="Divide by the running maximum of the second moment (the authors').")


class AdaPNM(BaseOptimizer[AdaPNMConfig], rule=Granularity.ELEMENTWISE):
    r"""Adam with two momenta, of the odd and of the even steps, whose weighted difference grows the gradient noise.

    .. math::
        m_t &= β_1^2 m_{t-2} + (1-β_1^2) g_t, \qquad
        \hat m_t = \frac{(1+β_0)\, m_t - β_0\, m_{t-1}}{\sqrt{(1+β_0)^2 + β_0^2}\, (1-β_1^t)} \\
        θ_t &= θ_{t-1} - γ\, \hat m_t / (\sqrt{\hat v_t} + ε)

    State: ``exp_avg`` (of the odd steps), ``neg_exp_avg`` (of the even ones), ``exp_avg_sq``, ``max_exp_avg_sq`` with
    ``amsgrad``: 16 (12) bytes a float32 parameter. Good for: generalization where batches are large or labels noisy.
    """

    def init_state(self, p: Tensor, cfg: AdaPNMConfig) -> dict[str, Tensor]:
        names = ("exp_avg", "neg_exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if cfg.amsgrad else []))
        return {name: helpers.zeros_like(p) for name in names}

    def scalars(self, cfg: AdaPNMConfig, step: Any) -> Scalars:
        debias1, debias2 = helpers.adam_debias(cfg.beta1, cfg.beta2, step)
        negative, noise = cfg.betas[2], helpers.sqrt((1 + cfg.betas[2]) ** 2 + cfg.betas[2] ** 2)
        odd = (step % 2) * 1.0
        return Scalars(
            step_size=cfg.lr / (debias1 * noise), denom_scale=helpers.sqrt(debias2),
            odd=odd, odd_share=(1 + negative) * odd - negative * (1 - odd),
            even=1 - odd, even_share=(1 + negative) * (1 - odd) - negative * odd,
        )  # fmt: skip

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        weight = 1 - c.beta1 * c.beta1
        # A weight of 0 leaves a momentum as it is: whose turn it is changes numbers and no code.
        helpers.ema_(s.exp_avg, g, weight * c.odd)
        helpers.ema_(s.neg_exp_avg, g, weight * c.even)
        helpers.ema_sq_(s.exp_avg_sq, g, c.beta2)
        second = helpers.ams_bound_(s.max_exp_avg_sq, s.exp_avg_sq) if c.amsgrad else s.exp_avg_sq
        difference = helpers.add_(s.exp_avg * helpers.as_like(c.odd_share, g), s.neg_exp_avg, c.even_share)
        return helpers.scaled(difference, c.step_size, over=helpers.root_plus(second, c.denom_scale, c.eps))
