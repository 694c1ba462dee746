r"""RMSprop. Tieleman & Hinton, Neural Networks for Machine Learning, lecture 6.5, 2012; centered: Graves, arXiv:1308.0850."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, Epsilon, LearningRate, NonNegative, Unit


class RMSpropConfig(OptimizerConfig):
    """Options of RMSprop; names, defaults and meaning are torch's."""

    lr: LearningRate = Field(1e-2, description="Learning rate γ: a float or a one-element tensor.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient (torch's); decoupled; independent.")
    alpha: Unit = Field(0.99, description="Decay rate α of the moving average of g².")
    eps: Epsilon = Field(1e-8, description="ε, added to the denominator.")
    momentum: NonNegative = Field(0.0, description="Momentum factor μ of the divided gradients.")
    centered: bool = Field(False, description="Divide by the root of the variance of g instead of its mean square.")


class RMSprop(BaseOptimizer[RMSpropConfig], rule=Granularity.ELEMENTWISE):
    r"""Divides the gradient by the root of a moving average of its square, then may add momentum.

    .. math::
        v_t &= α v_{t-1} + (1-α) g_t^2, \qquad b_t = μ b_{t-1} + g_t / (\sqrt{v_t} + ε) \\
        θ_t &= θ_{t-1} - γ\, b_t \qquad \text{centered: } v_t - \bar g_t^2 \text{ in the place of } v_t

    State: ``square_avg``, with momentum ``momentum_buffer``, if centered ``grad_avg``: 4 to 12 bytes a float32
    parameter. Checkpoints are interchangeable with ``torch.optim.RMSprop``. A variance that rounding makes
    negative counts as 0. Good for: recurrent networks, reinforcement learning.
    """

    def init_state(self, p: Tensor, cfg: RMSpropConfig) -> dict[str, Tensor]:
        names = [*(["momentum_buffer"] if cfg.momentum != 0 else []), *(["grad_avg"] if cfg.centered else [])]
        return {name: helpers.zeros_like(p) for name in ("square_avg", *names)}

    def scalars(self, cfg: RMSpropConfig, step: Any) -> Scalars:
        return Scalars(heavy=cfg.momentum != 0, rate=cfg.lr, share=1.0)

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        helpers.ema_sq_(s.square_avg, g, c.alpha)
        variance = s.square_avg
        if c.centered:
            helpers.ema_(s.grad_avg, g, 1 - c.alpha)
            variance = (variance - s.grad_avg.square()).clamp_(min=0.0)
        root = self.root(variance, c)
        if not c.heavy:
            return helpers.scaled(g, c.lr, over=root)
        helpers.addcdiv_(s.momentum_buffer.mul_(c.momentum), g, root, c.share)
        return helpers.scaled(s.momentum_buffer, c.rate)

    def root(self, variance: Tensor, c: Scalars) -> Tensor:
        """The denominator."""
        return helpers.root_plus(variance, 1.0, c.eps)
