r"""LDoG: DoG layer by layer. Ivgi, Hinder & Carmon, "DoG is SGD's Best Friend", 2023, arXiv:2302.12022."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, Epsilon, LearningRate, Positive


class LDoGConfig(OptimizerConfig):
    """Options of LDoG; defaults are the authors'."""

    lr: LearningRate = Field(1.0, description="Multiplier c of the step size; 1 is right.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient (the authors'); decoupled; independent.")
    reps_rel: Positive = Field(
        1e-6, description="First distance as a share of 1 + ‖θ₀‖; 1e-4 with batch normalization."
    )
    eps: Epsilon = Field(1e-8, description="ε, added to the sum of squared gradient norms.")


class LDoG(BaseOptimizer[LDoGConfig], rule=Granularity.TENSOR):
    r"""DoG for each tensor by itself: its own distance, its own sum of squared gradients.

    .. math::
        η_{l,t} = γ\, \frac{\max_{i \le t} \|θ_{l,i} - θ_{l,0}\|}{\sqrt{ε + \sum_{i \le t} \|g_{l,i}\|^2}}

    State: ``init_buffer`` and two numbers a tensor, 4 bytes a float32 parameter. Average the weights (the ``ema``
    wrapper) for the results of the paper. Good for: fine-tuning layers of very different scale.
    """

    def init_state(self, p: Tensor, cfg: LDoGConfig) -> dict[str, Tensor]:
        return {"init_buffer": p.clone(), "rbar": helpers.zero_scalar(p), "G": helpers.zero_scalar(p)}

    def scalars(self, cfg: LDoGConfig, step: Any) -> Scalars:
        return Scalars(first=helpers.where(step == 1, 1.0, 0.0))

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        norm = torch.linalg.vector_norm
        start = c.first * c.reps_rel * (1 + norm(s.init_buffer))
        s.rbar = torch.maximum(torch.maximum(s.rbar, norm(p - s.init_buffer)), start)
        s.G = s.G + norm(g).square()
        return (c.lr * s.rbar / (s.G + c.eps).clamp(min=1e-38).sqrt()) * g
