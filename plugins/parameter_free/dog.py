r"""DoG: distance over gradients. Ivgi, Hinder & Carmon, "DoG is SGD's Best Friend", 2023, arXiv:2302.12022."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, Epsilon, LearningRate, Positive

from .estimate import norm_sq


class DoGConfig(OptimizerConfig):
    """Options of DoG; defaults are the authors'."""

    lr: LearningRate = Field(1.0, description="Multiplier c of the step size; 1 is right.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient (the authors'); decoupled; independent.")
    reps_rel: Positive = Field(
        1e-6, description="First distance as a share of 1 + ‖θ₀‖; 1e-4 with batch normalization."
    )
    init_eta: Positive | None = Field(None, description="First step size, in the place of the one from reps_rel.")
    eps: Epsilon = Field(1e-8, description="ε, added to the sum of squared gradient norms.")


class DoG(BaseOptimizer[DoGConfig], rule=Granularity.GLOBAL, update=Granularity.ELEMENTWISE):
    r"""SGD whose step size is the largest distance from the start over the root of the sum of squared gradients.

    .. math::
        η_t = γ\, \frac{\max_{i \le t} \|θ_i - θ_0\|}{\sqrt{ε + \sum_{i \le t} \|g_i\|^2}}, \qquad θ_{t+1} = θ_t - η_t g_t

    Each parameter group is one long vector: ``rbar`` and ``G`` stand in it. State: ``init_buffer``, 4 bytes a float32
    parameter. Average the weights (the ``ema`` wrapper) for the results of the paper. Good for: fine-tuning.
    """

    sums_per_group = True

    def init_group(self, cfg: DoGConfig) -> dict[str, Any]:
        return {"rbar": torch.zeros((), dtype=torch.float64), "G": torch.tensor(cfg.eps, dtype=torch.float64)}

    def init_state(self, p: Tensor, cfg: DoGConfig) -> dict[str, Tensor]:
        return {"init_buffer": p.clone()}

    def advance(self, cfg: DoGConfig, group: dict[str, Any], step: Any) -> Mapping[str, Any]:
        return {"first": helpers.where(step == 1, 1.0, 0.0)}

    def reduce(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Mapping[str, Tensor]:
        return {
            "distance_sq": norm_sq(p - s.init_buffer),
            "start_sq": norm_sq(s.init_buffer),
            "g_sq": norm_sq(g),
        }

    def combine(self, totals: Mapping[str, Tensor], shared: dict[str, Tensor], c: Scalars) -> Mapping[str, Any]:
        shared["G"] = shared["G"] + totals["g_sq"]
        # The first distance is a guess, not a measurement; with init_eta the first step size is given instead.
        guess = 0.0 if c.init_eta is not None else c.first * c.reps_rel * (1 + totals["start_sq"].sqrt())
        distance = helpers.maximum(totals["distance_sq"].sqrt(), guess).to(torch.float64)
        shared["rbar"] = torch.maximum(shared["rbar"], distance)
        eta = shared["rbar"] / torch.where(shared["G"] > 0, shared["G"], 1.0).sqrt()
        return {"eta": eta if c.init_eta is None else eta * (1 - c.first) + c.init_eta * c.first}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        return (c.lr * c.eta) * g
