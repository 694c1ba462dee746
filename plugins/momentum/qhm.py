r"""QHM. Ma & Yarats, "Quasi-hyperbolic momentum and Adam for deep learning", 2019, arXiv:1810.06801."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, Fraction, LearningRate, Unit


class QHMConfig(OptimizerConfig):
    """Options of QHM; ν and β are those that the paper recommends."""

    lr: LearningRate = Field(
        0.1, description="Learning rate γ: that of SGD without momentum, 1/(1 − β) times SGD's with."
    )
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient (the authors'); decoupled; independent.")
    momentum: Fraction = Field(0.999, description="β, decay rate of the moving average of g.")
    nu: Unit = Field(0.7, description="ν, weight of the average in the update: 0 is plain SGD, 1 is momentum.")


class QHM(BaseOptimizer[QHMConfig], rule=Granularity.ELEMENTWISE):
    r"""A weighted mean of a plain SGD step and a momentum step.

    .. math::
        m_t = β m_{t-1} + (1-β) g_t, \qquad θ_t = θ_{t-1} - γ \left( (1-ν) g_t + ν m_t \right)

    State: ``momentum_buffer``, 4 bytes a float32 parameter. Good for: SGD with momentum where β alone is too coarse
    a knob; Nesterov's momentum is the case ν = β.
    """

    counts_steps = False

    def init_state(self, p: Tensor, cfg: QHMConfig) -> dict[str, Tensor]:
        return {"momentum_buffer": helpers.zeros_like(p)}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        helpers.ema_(s.momentum_buffer, g, 1 - c.momentum)
        return helpers.scaled(helpers.nesterov_ema(s.momentum_buffer, g, c.nu), c.lr)
