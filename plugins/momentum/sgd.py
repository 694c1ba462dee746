r"""SGD with momentum. Sutskever et al., "On the importance of initialization and momentum in deep learning", 2013."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field, model_validator
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, LearningRate, NonNegative, Real
from zoo.engines.fused import FusedKernel, FusedSGD


class SGDConfig(OptimizerConfig):
    """Options of SGD; names, defaults and meaning are torch's."""

    lr: LearningRate = Field(1e-3, description="Learning rate γ: a float or a one-element tensor.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient; decoupled: SGDW; independent.")
    momentum: NonNegative = Field(0.0, description="Momentum factor μ.")
    dampening: Real = Field(0.0, description="Dampening τ of the gradient that enters the momentum buffer.")
    nesterov: bool = Field(False, description="Look ahead along the momentum; needs momentum > 0 and dampening 0.")

    @model_validator(mode="after")
    def _nesterov_needs_momentum(self) -> SGDConfig:
        if self.nesterov and (self.momentum <= 0 or self.dampening != 0):
            raise ValueError("nesterov momentum requires momentum > 0 and dampening = 0")
        return self


class SGD(BaseOptimizer[SGDConfig], rule=Granularity.ELEMENTWISE):
    r"""Stochastic gradient descent, with heavy-ball or Nesterov momentum.

    .. math::
        b_t &= μ b_{t-1} + (1-τ) g_t \quad (b_1 = g_1) \\
        θ_t &= θ_{t-1} - γ\, b_t \qquad\text{Nesterov: } θ_{t-1} - γ (g_t + μ b_t)

    State: none without momentum, else ``momentum_buffer``, 4 bytes a float32 parameter. Checkpoints are
    interchangeable with ``torch.optim.SGD``. Sparse gradients stay sparse without momentum. Good for: vision models with a tuned schedule.
    """

    counts_steps = False
    supports_sparse = True
    fused_kernel: ClassVar[FusedKernel | None] = FusedSGD()

    def has_step(self, cfg: SGDConfig) -> bool:
        return cfg.momentum != 0 and cfg.dampening != 0

    def init_state(self, p: Tensor, cfg: SGDConfig) -> dict[str, Tensor]:
        return {"momentum_buffer": helpers.zeros_like(p)} if cfg.momentum != 0 else {}

    def scalars(self, cfg: SGDConfig, step: Any) -> Scalars:
        # The first gradient enters the buffer undamped, as in torch.
        first = 0.0 if step is None else helpers.where(step == 1, 1.0, 0.0)
        return Scalars(heavy=cfg.momentum != 0, share=1.0 - cfg.dampening * (1.0 - first))

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        if not c.heavy:
            return helpers.scaled(g, c.lr)
        g = g.to_dense() if g.layout is torch.sparse_coo else g
        helpers.add_(s.momentum_buffer.mul_(c.momentum), g, c.share)
        return helpers.scaled(
            helpers.nesterov(s.momentum_buffer, g, c.momentum) if c.nesterov else s.momentum_buffer, c.lr
        )

    def missing_state(self, name: str, fresh: Tensor, given: Mapping[str, Tensor]) -> Tensor:
        # torch keeps no step count: where it has a buffer, the first step is over.
        return fresh + 1 if name == "step" and "momentum_buffer" in given else fresh
