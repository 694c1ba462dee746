r"""MADGRAD. Defazio & Jelassi, "Adaptivity without Compromise", 2022, arXiv:2101.11075."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, Epsilon, Fraction, LearningRate


class MADGRADConfig(OptimizerConfig):
    """Options of MADGRAD; defaults are the authors'."""

    lr: LearningRate = Field(1e-2, description="Learning rate γ: not comparable to SGD's or Adam's, sweep it anew.")
    decay_mode: DecayMode = Field(
        "l2", description="l2: λθ joins the gradient; decoupled (the authors' decouple_decay)."
    )
    momentum: Fraction = Field(0.9, description="Weight of the old iterate in the new one.")
    eps: Epsilon = Field(1e-6, description="ε, added to the cube root, and to γ where γ is not 0.")


class MADGRAD(BaseOptimizer[MADGRADConfig], rule=Granularity.ELEMENTWISE):
    r"""Dual averaging over the cube root of the summed squares, with iterate averaging as its momentum.

    .. math::
        λ_t &= γ \sqrt t, \qquad s_t = s_{t-1} + λ_t g_t, \qquad v_t = v_{t-1} + λ_t g_t^2 \\
        z_t &= θ_0 - \frac{s_t}{\sqrt[3]{v_t} + ε}, \qquad θ_t = μ\, θ_{t-1} + (1-μ)\, z_t

    State: ``grad_sum_sq`` (v), ``s``, and with momentum ``x0`` (θ₀): 12 (8) bytes a float32 parameter. The authors' code
    counts the steps of the optimizer, here each parameter counts its own. At lr 0 nothing moves. Wants less weight decay
    than other methods, often none. Good for: vision, sparse problems (without momentum).
    """

    def init_state(self, p: Tensor, cfg: MADGRADConfig) -> dict[str, Tensor]:
        start = {"x0": p.clone()} if cfg.momentum != 0 else {}
        return {"grad_sum_sq": helpers.zeros_like(p), "s": helpers.zeros_like(p), **start}

    def scalars(self, cfg: MADGRADConfig, step: Any) -> Scalars:
        active, lr = helpers.where(cfg.lr > 0, 1.0, 0.0), lifted(cfg.lr, cfg.eps)
        scalars = Scalars(heavy=cfg.momentum != 0, weight=lr * step**0.5, share=(1 - cfg.momentum) * active)
        if cfg.decay_mode == "decoupled":
            scalars.decay = lr * cfg.weight_decay
        return scalars

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        # Without momentum θ₀ is found again from θ, so it need not be kept.
        start = s.x0 if c.heavy else p + s.s / cube_root(s.grad_sum_sq, c.eps)
        helpers.addcmul_(s.grad_sum_sq, g, g, c.weight)
        helpers.add_(s.s, g, c.weight)
        return helpers.scaled((p - start).add_(s.s / cube_root(s.grad_sum_sq, c.eps)), c.share)


def lifted(lr: helpers.Scalar, eps: helpers.Scalar) -> helpers.Scalar:
    """γ + ε, but 0 for γ = 0."""
    return helpers.where(lr > 0, lr + eps, 0.0)


def cube_root(v: Tensor, eps: helpers.Scalar) -> Tensor:
    """∛v + ε, a new tensor; infinite where that is 0, so that nothing divides by it."""
    root = v.pow(1 / 3) + helpers.as_like(eps, v)
    return torch.where(root > 0, root, torch.inf)
