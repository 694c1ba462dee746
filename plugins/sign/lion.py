r"""Lion: evolved sign momentum. Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, arXiv:2302.06675."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import Betas, LearningRate


class LionConfig(OptimizerConfig):
    """Options of Lion; defaults are the authors'."""

    lr: LearningRate = Field(1e-4, description="Learning rate γ: 3 to 10 times smaller than AdamW's.")
    betas: Betas = Field((0.9, 0.99), description="β₁ of the update's interpolation, β₂ of the moving average of g.")


class Lion(BaseOptimizer[LionConfig], rule=Granularity.ELEMENTWISE):
    r"""Lion steps by the sign of an interpolation between momentum and gradient: every element moves by γ.

    .. math::
        θ_t &= θ_{t-1} - γ \left( \operatorname{sign}(β_1 m_{t-1} + (1-β_1) g_t) + λ θ_{t-1} \right) \\
        m_t &= β_2 m_{t-1} + (1-β_2) g_t

    State: ``exp_avg``, 4 bytes a float32 parameter. Use a learning rate 3 to 10 times smaller and a weight
    decay as many times larger than AdamW's. Good for: large batches, little memory.
    """

    counts_steps = False

    def init_state(self, p: Tensor, cfg: LionConfig) -> dict[str, Tensor]:
        return {"exp_avg": helpers.zeros_like(p)}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        update = helpers.nesterov_ema(s.exp_avg, g, c.beta1).sign_()
        helpers.ema_(s.exp_avg, g, 1 - c.beta2)
        return helpers.scaled(update, c.lr)
