r"""Padam. Chen et al., "Closing the Generalization Gap of Adaptive Gradient Methods", 2018, arXiv:1806.06763."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers
from zoo.config import LearningRate, Positive

from .moments import Moments, MomentsConfig


class PadamConfig(MomentsConfig):
    """Options of Padam; defaults are the authors'."""

    lr: LearningRate = Field(0.1, description="Learning rate γ: as SGD's.")
    partial: Positive = Field(0.25, le=0.5, description="p, power of v: 1/2 is AMSGrad, towards 0 SGD with momentum.")
    amsgrad: bool = Field(True, description="Divide by the running maximum of the second moment (the paper's).")


class Padam(Moments[PadamConfig], rule=Granularity.ELEMENTWISE):
    r"""AMSGrad that divides by a smaller power of the second moment: between Adam and SGD with momentum.

    .. math::
        \hat v_t = \max(\hat v_{t-1}, v_t), \qquad
        θ_t = θ_{t-1} - γ\, \frac{\sqrt{1-β_2^t}}{1-β_1^t} \frac{m_t}{(\sqrt{\hat v_t} + ε)^{2p}}

    State: ``exp_avg``, ``exp_avg_sq``, ``max_exp_avg_sq`` (without ``amsgrad`` not the last): 12 (8) bytes a float32
    parameter. ε and the bias corrections are the authors' code's. Good for: vision models that SGD generalizes better on.
    """

    def init_state(self, p: Tensor, cfg: PadamConfig) -> dict[str, Tensor]:
        bound = {"max_exp_avg_sq": helpers.zeros_like(p)} if cfg.amsgrad else {}
        return {**super().init_state(p, cfg), **bound}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        self.average_(g, s, c)
        second = helpers.ams_bound_(s.max_exp_avg_sq, s.exp_avg_sq) if c.amsgrad else s.exp_avg_sq
        root = torch.pow(helpers.root_plus(second, 1.0, c.eps), 2 * c.partial)
        return helpers.scaled(s.exp_avg, c.step_size * c.denom_scale, over=root)
