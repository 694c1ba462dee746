r"""Nero. Liu et al., "Learning by Turning: Neural Architecture Aware Optimisation", 2021, arXiv:2102.07227."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import Epsilon, Fraction, LearningRate

from .differentiable import readable


class NeroConfig(OptimizerConfig):
    """Options of Nero; defaults are the authors'."""

    lr: LearningRate = Field(1e-2, description="Learning rate γ: the angle by which a neuron turns.")
    beta: Fraction = Field(
        0.999, description="β, decay rate of the moving average of a neuron's squared gradient norm."
    )
    constraints: bool = Field(True, description="Keep the weights of every neuron at mean 0 and norm 1.")
    eps: Epsilon = Field(1e-8, description="ε, added to the denominators.")


class Nero(BaseOptimizer[NeroConfig], rule=Granularity.TENSOR):
    r"""Projected descent that turns every neuron by a like angle, on the sphere of balanced neurons.

    .. math::
        v_t &= β v_{t-1} + (1-β) \|g_t\|^2_{\text{neuron}}, \qquad
        θ' = θ_{t-1} - γ\, σ \frac{g_t}{\sqrt{v_t / (1-β^t)} + ε} \\
        θ_t &= (θ' - \operatorname{mean} θ') / \|θ' - \operatorname{mean} θ'\| \quad \text{neuron by neuron}

    A neuron is a slice of the first dimension; an element, in tensors of fewer than two dimensions, which are not constrained,
    nor are neurons with one input. σ is the mean size of the tensor's neurons at the start, 0.01 if they are 0. State: one
    number a neuron (``exp_avg_sq``) and one a tensor (``scale``). Where the authors' code balances the neurons before training,
    here each is balanced at its first gradient. Good for: networks without tuning, where neurons may be balanced.
    """

    def init_state(self, p: Tensor, cfg: NeroConfig) -> dict[str, Tensor]:
        scale = helpers.zero_scalar(p)
        if p.ndim < 2:
            return {"exp_avg_sq": helpers.zeros_like(p), "scale": scale}
        shape = (p.shape[0], *(1,) * (p.ndim - 1))
        return {"exp_avg_sq": torch.zeros(shape, dtype=scale.dtype, device=p.device), "scale": scale}

    def scalars(self, cfg: NeroConfig, step: Any) -> Scalars:
        return Scalars(debias=helpers.debias(cfg.beta, step), active=helpers.where(cfg.lr > 0, 1.0, 0.0))

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        helpers.ema_sq_(s.exp_avg_sq, neuron_norm(g), c.beta)
        known, p = s.exp_avg_sq > 0, readable(p)
        start = balanced(p, c.eps) if c.constraints else p
        size = mean_norm(start)
        s.scale = torch.where(s.scale > 0, s.scale, torch.where(size > 0, size, 0.01))
        root = helpers.root_plus(s.exp_avg_sq, helpers.sqrt(c.debias), c.eps)
        turn = g / torch.where(root > 0, root, 1.0) * helpers.as_like(s.scale * c.lr, g)
        if not c.constraints:
            return helpers.scaled(turn, 1.0)
        start = torch.where(known, start, p)
        new = start - turn
        return helpers.scaled(p - torch.where(known, balanced(new, c.eps), new), c.active)


@helpers.per_tensor
def neuron_norm(x: Tensor) -> Tensor:
    """The norm of every neuron, its dimensions kept; absolute values of a 0-D or 1-D tensor."""
    if x.ndim < 2:
        return x.abs()
    norm: Tensor = torch.linalg.vector_norm(x, dim=tuple(range(1, x.ndim)), keepdim=True)
    return norm


@helpers.per_tensor
def mean_norm(x: Tensor) -> Tensor:
    """The mean of :func:`neuron_norm`, 0-dim; 0 for an empty tensor."""
    return neuron_norm(x).mean() if x.numel() else x.new_zeros(())


@helpers.per_tensor
def balanced(x: Tensor, eps: helpers.Scalar) -> Tensor:
    """Every neuron at mean 0 and norm 1; unchanged where neurons have but one weight."""
    if x.ndim < 2 or x.numel() <= x.shape[0]:
        return x
    centered = x - x.mean(tuple(range(1, x.ndim)), keepdim=True)
    return centered / (neuron_norm(centered) + helpers.as_like(eps, x))
