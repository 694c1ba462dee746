r"""PID. An et al., "A PID Controller Approach for Stochastic Optimization of Deep Networks", CVPR 2018."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, Fraction, LearningRate, NonNegative, Real


class PIDConfig(OptimizerConfig):
    """Options of PID; the gains are the authors' code's."""

    lr: LearningRate = Field(1e-3, description="Learning rate γ.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient (the authors'); decoupled; independent.")
    momentum: Fraction = Field(0.9, description="μ, decay rate of the integral and of the derivative.")
    dampening: Real = Field(
        0.0, description="Dampening τ of the gradient that enters the integral, from the second step on."
    )
    integral: NonNegative = Field(5.0, description="Gain kᵢ of the integral term.")
    derivative: NonNegative = Field(10.0, description="Gain k_d of the derivative term.")


class PID(BaseOptimizer[PIDConfig], rule=Granularity.ELEMENTWISE):
    r"""Momentum is the integral term of a controller; PID adds the derivative, which foresees overshoot.

    .. math::
        I_t &= μ I_{t-1} + (1-τ) g_t, \qquad D_t = μ D_{t-1} + (1-μ)(g_t - g_{t-1}) \quad (I_1 = g_1,\ D_1 = 0) \\
        θ_t &= θ_{t-1} - γ (g_t + k_i I_t + k_d D_t)

    State: ``i_buffer``, ``d_buffer``, ``grad_buffer`` (the last gradient): 12 bytes a float32 parameter. The authors'
    code and its ports forget the first gradient, so that their second difference is :math:`g_2 - 0`; the paper's, and
    ours, is :math:`g_2 - g_1`. Good for: momentum that overshoots.
    """

    def init_state(self, p: Tensor, cfg: PIDConfig) -> dict[str, Tensor]:
        return {name: helpers.zeros_like(p) for name in ("i_buffer", "d_buffer", "grad_buffer")}

    def scalars(self, cfg: PIDConfig, step: Any) -> Scalars:
        first = helpers.where(step == 1, 1.0, 0.0)
        return Scalars(share=1 - cfg.dampening * (1 - first), slope=(1 - cfg.momentum) * (1 - first))

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        helpers.add_(s.i_buffer.mul_(c.momentum), g, c.share)
        helpers.add_(s.d_buffer.mul_(c.momentum), g - s.grad_buffer, c.slope)
        s.grad_buffer.copy_(g)
        direction = helpers.add_(helpers.add_scaled(g, s.i_buffer, c.integral), s.d_buffer, c.derivative)
        return helpers.scaled(direction, c.lr)
