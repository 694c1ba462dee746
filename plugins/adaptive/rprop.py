r"""Rprop. Riedmiller & Braun, "A direct adaptive method for faster backpropagation learning", 1993, doi:10.1109/ICNN.1993.298623."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field, model_validator
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import LearningRate, NonNegative, Positive


class RpropConfig(OptimizerConfig):
    """Options of Rprop; names, defaults and meaning are torch's."""

    lr: LearningRate = Field(1e-2, description="First step size of every weight; later values only switch it off at 0.")
    etas: tuple[Positive, Positive] = Field(
        (0.5, 1.2), description="Factors (η⁻, η⁺) of the step size after a change of sign and after none."
    )
    step_sizes: tuple[NonNegative, NonNegative] = Field((1e-6, 50.0), description="Smallest and largest step size.")

    @model_validator(mode="after")
    def _etas_enclose_one(self) -> RpropConfig:
        if not self.etas[0] < 1.0 < self.etas[1]:
            raise ValueError(f"etas must satisfy 0 < η⁻ < 1 < η⁺, got {self.etas}")
        if self.step_sizes[0] > self.step_sizes[1]:
            raise ValueError(f"step_sizes must be (smallest, largest), got {self.step_sizes}")
        return self


class Rprop(BaseOptimizer[RpropConfig], rule=Granularity.ELEMENTWISE):
    r"""Steps by the gradient's sign; each weight's step size grows while the sign stays and shrinks when it changes.

    .. math::
        δ_t &= \begin{cases} \min(η^+ δ_{t-1}, δ_{\max}) & g_{t-1} g_t > 0 \\
        \max(η^- δ_{t-1}, δ_{\min}),\; g_t \leftarrow 0 & g_{t-1} g_t < 0 \\ δ_{t-1} & \text{else} \end{cases} \\
        θ_t &= θ_{t-1} - δ_t \operatorname{sign}(g_t)

    State: ``prev``, ``step_size``: 8 bytes a float32 parameter. Checkpoints are interchangeable with
    ``torch.optim.Rprop``. At lr 0 nothing moves. Good for: full-batch training; noise confuses the signs.
    """

    def init_state(self, p: Tensor, cfg: RpropConfig) -> dict[str, Tensor]:
        # A step size of 0 stands for the lr of the first step, which a schedule may still change.
        return {"prev": helpers.zeros_like(p), "step_size": helpers.zeros_like(p)}

    def scalars(self, cfg: RpropConfig, step: Any) -> Scalars:
        return Scalars(active=helpers.where(cfg.lr > 0, 1.0, 0.0))

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        (shrink, grow), (smallest, largest) = c.etas, c.step_sizes
        agreement = g.sign() * s.prev.sign()
        turned, size = agreement < 0, torch.where(s.step_size > 0, s.step_size, helpers.as_like(c.lr, g))
        size = torch.where(agreement > 0, size * grow, torch.where(turned, size * shrink, size))
        s.step_size = helpers.where(c.lr > 0, helpers.minimum(helpers.maximum(size, smallest), largest), s.step_size)
        s.prev = torch.where(turned, 0.0, g)
        return helpers.scaled(s.prev.sign() * s.step_size, c.active)
