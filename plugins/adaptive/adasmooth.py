r"""AdaSmooth. Lu, "AdaSmooth: An Adaptive Learning Rate Method based on Effective Ratio", 2022, arXiv:2204.00825."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import Betas, DecayMode, Epsilon, LearningRate


class AdaSmoothConfig(OptimizerConfig):
    """Options of AdaSmooth; defaults are the paper's."""

    lr: LearningRate = Field(1e-3, description="Learning rate γ: a float or a one-element tensor.")
    betas: Betas = Field((0.5, 0.99), description="ρ₁, ρ₂: decay rates of g² on a straight path and on a zigzag one.")
    eps: Epsilon = Field(1e-6, description="ε, added under the root and to the length of the path.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient; decoupled; independent.")


class AdaSmooth(BaseOptimizer[AdaSmoothConfig], rule=Granularity.ELEMENTWISE):
    r"""RMSprop whose memory is short while a weight travels straight and long when it moves to and fro.

    .. math::
        e_t &= \frac{|\sum_{i<t} Δ_i|}{\sum_{i<t} |Δ_i| + ε}, \qquad c_t = (ρ_2 - ρ_1)\, e_t + (1-ρ_2) \\
        v_t &= c_t^2 g_t^2 + (1-c_t^2)\, v_{t-1}, \qquad Δ_t = -γ\, \frac{g_t}{\sqrt{v_t + ε}}, \qquad
        θ_t = θ_{t-1} + Δ_t

    Each weight has a path of its own. Before it has moved e is 0, and so the first step is γ/(1 − ρ₂) long, 100 γ by default:
    begin with a small γ. State: ``s`` (where a weight got to), ``n`` (how far it went), ``exp_avg_sq``: 12 bytes a
    float32 parameter. Good for: Adagrad's tasks, with less care for the learning rate.
    """

    counts_steps = False

    def init_state(self, p: Tensor, cfg: AdaSmoothConfig) -> dict[str, Tensor]:
        return {name: helpers.zeros_like(p) for name in ("s", "n", "exp_avg_sq")}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        smooth = s.s.abs() / (s.n + c.eps) * (c.beta2 - c.beta1) + (1 - c.beta2)
        s.exp_avg_sq = helpers.ema_sq_(s.exp_avg_sq, g, 1 - smooth.square())
        update = g * helpers.as_like(c.lr, g) / (s.exp_avg_sq + c.eps).sqrt()
        s.s = s.s - update
        s.n = s.n + update.abs()
        return update
