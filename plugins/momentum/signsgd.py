r"""signSGD. Bernstein et al., "signSGD: Compressed Optimisation for Non-Convex Problems", 2018, arXiv:1802.04434."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, Fraction, LearningRate


class SignSGDConfig(OptimizerConfig):
    """Options of signSGD; the momentum is the paper's for Signum."""

    lr: LearningRate = Field(1e-3, description="Learning rate γ: how far every element moves.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient (the authors'); decoupled; independent.")
    momentum: Fraction = Field(0.9, description="β of the moving average of g (Signum); 0 is signSGD itself.")


class SignSGD(BaseOptimizer[SignSGDConfig], rule=Granularity.ELEMENTWISE):
    r"""Every element moves by γ against the sign of its gradient, or of the gradient's moving average (Signum).

    .. math::
        m_t = β m_{t-1} + (1-β) g_t, \qquad θ_t = θ_{t-1} - γ \operatorname{sign}(m_t)

    State: ``momentum_buffer``, 4 bytes a float32 parameter; none without momentum. Good for: gradients sent as
    one bit an element, and as the simplest relative of Adam and Lion.
    """

    counts_steps = False

    def init_state(self, p: Tensor, cfg: SignSGDConfig) -> dict[str, Tensor]:
        return {"momentum_buffer": helpers.zeros_like(p)} if cfg.momentum != 0 else {}

    def scalars(self, cfg: SignSGDConfig, step: Any) -> Scalars:
        return Scalars(heavy=cfg.momentum != 0)

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        direction = helpers.ema_(s.momentum_buffer, g, 1 - c.momentum) if c.heavy else g
        return helpers.scaled(direction.sign(), c.lr)
