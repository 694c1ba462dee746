"""AMSGrad's bound: the running maximum of the second moment. Reddi, Kale & Kumar, 2018, arXiv:1904.09237."""

from __future__ import annotations

import torch
from torch import Tensor

from .scalar import Scalar, as_like, sqrt

__all__ = ["adam_denominator", "ams_bound_"]


def ams_bound_(max_avg_sq: Tensor, avg_sq: Tensor) -> Tensor:
    """v̂ ← max(v̂, v) in place, elementwise; returns ``max_avg_sq``.

    The real and the imaginary part of a complex number have a maximum each.

    Args:
        max_avg_sq: the running maximum v̂, changed in place.
        avg_sq: the second moment v, left alone.
    """
    # Where autograd records, it saves what maximum() read: give it a copy, the state is about to change.
    before = max_avg_sq.clone() if torch.is_grad_enabled() else max_avg_sq
    if max_avg_sq.is_complex():
        larger = torch.view_as_complex(torch.maximum(torch.view_as_real(before), torch.view_as_real(avg_sq)))
    else:
        larger = torch.maximum(before, avg_sq)
    return max_avg_sq.copy_(larger)


def adam_denominator(avg_sq: Tensor, bias_correction: Scalar, eps: Scalar, sqrt_eps: Scalar = 0.0) -> Tensor:
    """√(v + ε₀)/√c + ε as a new tensor: Adam's denominator, and AMSGrad's when given the running maximum.

    The order is torch's: the root of v, divided by the root of the correction, plus ε.

    Args:
        avg_sq: the second moment v (or its running maximum); real views for complex tensors.
        bias_correction: c = 1 − β₂ᵗ from :func:`~zoo.helpers.debias`; 1 for none.
        eps: ε, added outside the root.
        sqrt_eps: ε₀, added under the root; 0 as in torch.
    """
    if isinstance(sqrt_eps, Tensor) or sqrt_eps != 0.0:
        avg_sq = avg_sq + as_like(sqrt_eps, avg_sq)
    return (avg_sq.sqrt() / as_like(sqrt(bias_correction), avg_sq)).add_(eps)
