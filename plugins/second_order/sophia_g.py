r"""Sophia-G. Liu et al., "Sophia: A Scalable Stochastic Second-order Optimizer", 2023, arXiv:2305.14342."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import Betas, LearningRate, Positive, WeightDecay


class SophiaGConfig(OptimizerConfig):
    """Options of Sophia-G; defaults are the authors' code's."""

    lr: LearningRate = Field(1e-4, description="Learning rate γ.")
    betas: Betas = Field(
        (0.965, 0.99), description="Decay rates β₁, β₂ of the moving averages of g and of the curvature."
    )
    rho: Positive = Field(0.04, description="ρ, scale of the curvature: larger clips fewer elements.")
    weight_decay: WeightDecay = Field(0.1, description="Weight decay λ, decoupled.")
    batch_size: int = Field(1, ge=1, description="B, the number of samples (tokens) whose mean the sampled loss is.")


class SophiaG(BaseOptimizer[SophiaGConfig], rule=Granularity.ELEMENTWISE):
    r"""Sophia with the Gauss-Newton-Bartlett estimate: squared gradients of the loss at labels that the model samples.

    .. math::
        h_t = β_2 h_{t-k} + (1-β_2)\, \hat g ⊙ \hat g, \qquad
        θ_t = θ_{t-1} - γ \operatorname{sign}(m_t) \min\!\left(\frac{|m_t|}{ρ B h_t + 10^{-15}}, 1\right)

    Every k (10) steps: sample labels from the model's own output, call backward on that loss, ``opt.update_hessian()``
    and ``zero_grad()``, then train on the real labels. State: ``exp_avg``, ``hessian``: 8 bytes a float32 parameter.
    Until the first call every element moves by γ. Good for: language models without second derivatives.
    """

    counts_steps = False

    def init_state(self, p: Tensor, cfg: SophiaGConfig) -> dict[str, Tensor]:
        return {"exp_avg": helpers.zeros_like(p), "hessian": helpers.zeros_like(p)}

    @torch.no_grad()
    def update_hessian(self) -> None:
        """Take the present gradients for those of a loss at sampled labels, and move the curvature."""
        for group in self.param_groups:
            for p in self._trainable(group):
                state = self._ensure_state(p, group)
                helpers.ema_sq_(state["hessian"], p.grad.to(state["hessian"].dtype), self._hyper(group).beta2)  # type: ignore[union-attr]

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        helpers.ema_(s.exp_avg, g, 1 - c.beta1)
        ratio = s.exp_avg.abs() / (s.hessian * (c.rho * c.batch_size) + 1e-15)
        return helpers.scaled(s.exp_avg.sign() * ratio.clamp(max=1.0), c.lr)
