r"""Adadelta. Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012, arXiv:1212.5701."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, Epsilon, LearningRate, Unit


class AdadeltaConfig(OptimizerConfig):
    """Options of Adadelta; names, defaults and meaning are torch's."""

    lr: LearningRate = Field(1.0, description="Multiplier γ of the update; the paper's is 1.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient (torch's); decoupled; independent.")
    rho: Unit = Field(0.9, description="Decay rate ρ of the moving averages of g² and of Δ².")
    eps: Epsilon = Field(1e-6, description="ε, under both roots: it also sets the size of the first updates.")


class Adadelta(BaseOptimizer[AdadeltaConfig], rule=Granularity.ELEMENTWISE):
    r"""Scales the gradient by the ratio of recent updates to recent gradients, so that the units of θ come out right.

    .. math::
        v_t &= ρ v_{t-1} + (1-ρ) g_t^2, \qquad Δ_t = \frac{\sqrt{u_{t-1} + ε}}{\sqrt{v_t + ε}}\, g_t, \qquad
        u_t = ρ u_{t-1} + (1-ρ) Δ_t^2 \\
        θ_t &= θ_{t-1} - γ Δ_t

    State: ``square_avg``, ``acc_delta``: 8 bytes a float32 parameter. Checkpoints are interchangeable with
    ``torch.optim.Adadelta``. Good for: training without a tuned learning rate; slow at the start.
    """

    def init_state(self, p: Tensor, cfg: AdadeltaConfig) -> dict[str, Tensor]:
        return {"square_avg": helpers.zeros_like(p), "acc_delta": helpers.zeros_like(p)}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        helpers.ema_sq_(s.square_avg, g, c.rho)
        delta = (s.acc_delta + c.eps).sqrt() / (s.square_avg + c.eps).sqrt() * g
        helpers.ema_sq_(s.acc_delta, delta, c.rho)
        return helpers.scaled(delta, c.lr)
