"""RAdam's rectification of the adaptive step's variance. Liu et al., 2020, arXiv:1908.03265."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from .bias_correction import debias
from .scalar import Scalar, maximum, sqrt, where

__all__ = ["BelowThreshold", "Rectification", "rectify", "sma_length", "sma_length_limit"]

BelowThreshold = Literal["momentum", "none"]
"""What to do while the variance is intractable: plain ``momentum`` steps, or ``none`` at all."""


class Rectification(NamedTuple):
    """How much of the adaptive and of the plain momentum step to take; one of the two is always 0."""

    adaptive: Scalar
    """r_t above the threshold, 0 below it."""
    plain: Scalar
    """0 above the threshold; below it 1 (``momentum``) or 0 (``none``)."""


def sma_length_limit(beta2: Scalar) -> Scalar:
    """ρ∞ = 2/(1 − β₂) − 1: the longest simple moving average that β₂ stands for."""
    return 2.0 / (1.0 - beta2) - 1.0


def sma_length(beta2: Scalar, step: Scalar) -> Scalar:
    """ρ_t = ρ∞ − 2·t·β₂ᵗ/(1 − β₂ᵗ): the length of the approximating simple moving average at step t.

    Between 1 (at step 1) and ρ∞. A float if both arguments are numbers, else a tensor, free of the
    cancellation that the formula as printed suffers in float32 (it may pick the wrong side of the threshold).
    """
    # λ = −ln β₂ and Langevin's L(x) = coth x − 1/x:  ρ_t = L(λ/2) + t·(1 − L(t·λ/2)), a sum of positives.
    if isinstance(beta2, Tensor):
        half = beta2.clamp(min=torch.finfo(beta2.dtype).tiny).log() * -0.5
    elif isinstance(step, Tensor):
        half = torch.zeros_like(step) - 0.5 * math.log(max(beta2, 1e-38))
    else:
        return sma_length_limit(beta2) - 2.0 * step * float(beta2**step) / debias(beta2, step)
    return 1.0 - _langevin_complement(half) + step * _langevin_complement(half * step)


def _langevin_complement(x: Tensor) -> Tensor:
    """1 − coth x + 1/x for x ≥ 0, to full precision."""
    small = x < 0.25
    y = torch.where(small, x, 0.0)
    y2 = y * y
    odd = 1 / 3 - y2 * (1 / 45 - y2 * (2 / 945 - y2 * (1 / 4725 - y2 * (2 / 93555 - y2 * (1382 / 638512875)))))
    z = torch.where(small, 1.0, x)
    return torch.where(small, 1.0 - y * odd, 1.0 / z - 2.0 / torch.expm1(2.0 * z))


def rectify(beta2: Scalar, step: Scalar, threshold: float = 5.0, below: BelowThreshold = "momentum") -> Rectification:
    """r_t = √((ρ_t−4)(ρ_t−2)ρ∞ / ((ρ∞−4)(ρ∞−2)ρ_t)) above the threshold of ρ_t, and what to do below.

    A rule takes ``m̂ · (r.adaptive · √(1−β₂ᵗ)/(√v + ε) + r.plain)``: no branch, so the same lines serve float
    and tensor steps. Both weights are finite and never negative, whatever β₂ and t.

    Args:
        beta2: β₂ in [0, 1).
        step: t ≥ 1.
        threshold: of ρ_t; 5 as in torch. At least 4, where the variance starts to exist.
        below: ``momentum`` takes plain momentum steps below the threshold (the paper), ``none`` no steps.

    Raises:
        ValueError: for a threshold below 4 or an unknown ``below``.
    """
    if threshold < 4.0:
        raise ValueError(f"rectify: threshold must be at least 4 (the variance is infinite below), got {threshold}")
    if below not in ("momentum", "none"):
        raise ValueError(f"rectify: below must be 'momentum' or 'none', got {below!r}")
    limit, length = sma_length_limit(beta2), sma_length(beta2, step)
    tractable = length > threshold
    # Stand-ins keep the untaken side finite: no 0/0, no root of a negative number.
    limit = where(limit > 4.0, limit, 5.0)
    length = maximum(length, threshold)
    ratio = (length - 4.0) * (length - 2.0) * limit / ((limit - 4.0) * (limit - 2.0) * length)
    r, plain = sqrt(ratio), 0.0 if below == "none" else 1.0
    if isinstance(r, Tensor) and isinstance(tractable, Tensor):
        return Rectification(torch.where(tractable, r, 0.0), torch.where(tractable, torch.zeros_like(r), plain))
    return Rectification(r, 0.0) if tractable else Rectification(0.0, plain)
