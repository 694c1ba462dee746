r"""AdaShift. Zhou et al., "AdaShift: Decorrelation and Convergence of Adaptive Learning Rate Methods", 2019, arXiv:1810.00143."""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers
from zoo.config import Epsilon

from .moments import Moments, MomentsConfig


class AdaShiftConfig(MomentsConfig):
    """Options of AdaShift; defaults are those of the code for the paper."""

    eps: Epsilon = Field(1e-10, description="ε, added to the denominator.")
    keep_num: int = Field(10, ge=1, description="n: gradients kept, and steps by which the second moment lags behind.")
    reduce: Literal["max", "mean", "none"] = Field(
        "max",
        description="φ, what g² becomes before it is averaged: its largest or mean value in the tensor, or itself.",
    )


class AdaShift(Moments[AdaShiftConfig], rule=Granularity.TENSOR):
    r"""Adam whose second moment is made of gradients n steps old, so that it knows nothing of the present one.

    .. math::
        m_t &= \frac{\sum_{i<n} β_1^i g_{t-i}}{\sum_{i<n} β_1^i}, \qquad
        v_t = β_2 v_{t-1} + (1-β_2)\, φ(g_{t-n}^2) \\
        θ_t &= θ_{t-1} - γ\, \frac{m_t}{\sqrt{v_t / (1-β_2^{t-n})} + ε} \qquad (t > n)

    The first n steps move nothing, nor does a step whose v is still 0. State: ``grad_0`` (the oldest) to
    ``grad_{n-1}``: 4n bytes a float32 parameter; ``exp_avg_sq``: one number, or 4 bytes a parameter with reduce "none".
    Good for: rare large gradients, where Adam's rate is biased.
    """

    def init_state(self, p: Tensor, cfg: AdaShiftConfig) -> dict[str, Tensor]:
        grads = {f"grad_{i}": helpers.zeros_like(p) for i in range(cfg.keep_num)}
        return {**grads, "exp_avg_sq": helpers.zeros_like(p) if cfg.reduce == "none" else helpers.zero_scalar(p)}

    def scalars(self, cfg: AdaShiftConfig, step: Any) -> Scalars:
        weights = [cfg.beta1**age for age in reversed(range(cfg.keep_num))]
        debias = helpers.debias(cfg.beta2, helpers.maximum(step - cfg.keep_num, 1))
        return Scalars(weights=tuple(w / sum(weights) for w in weights), denom_scale=helpers.sqrt(debias))

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        square = s.grad_0.square()
        helpers.ema_(s.exp_avg_sq, square if c.reduce == "none" else reduced(square, c.reduce), 1 - c.beta2)
        mean = torch.zeros_like(g)
        for i in range(c.keep_num):
            grad = getattr(s, f"grad_{i + 1}") if i + 1 < c.keep_num else g.clone()
            setattr(s, f"grad_{i}", grad)
            helpers.add_(mean, grad, c.weights[i])
        root = helpers.root_plus(s.exp_avg_sq, c.denom_scale, c.eps)
        known = s.exp_avg_sq > 0
        return torch.where(known, mean * helpers.as_like(c.lr, g) / torch.where(known, root, 1.0), 0.0)


@helpers.per_tensor
def reduced(x: Tensor, how: str) -> Tensor:
    """The largest or the mean element, 0-dim; 0 of an empty tensor."""
    if not x.numel():
        return x.new_zeros(())
    return x.amax() if how == "max" else x.mean()
