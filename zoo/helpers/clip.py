"""Clipping one tensor's gradient: by unit-wise ratio to the parameter, by norm, by value."""

from __future__ import annotations

import torch
from torch import Tensor

from .scalar import Scalar, as_like, maximum, per_tensor

__all__ = ["adaptive_clip", "clip_by_norm", "clip_by_value", "clip_ratio", "unit_norm"]


@per_tensor
def unit_norm(x: Tensor) -> Tensor:
    """The norm over all dimensions but the first, which are kept; of a 0-D or 1-D tensor as a whole."""
    units = tuple(range(1, x.ndim)) or None
    norm: Tensor = torch.linalg.vector_norm(x, dim=units, keepdim=units is not None)
    return norm


def clip_ratio(size: Tensor, bound: Scalar) -> Tensor:
    """min(1, bound/size), shaped like ``size``: exactly 1 up to the bound, also where both are 0."""
    over = size > bound
    return torch.where(over, as_like(bound, size) / torch.where(over, size, 1.0), 1.0)


def adaptive_clip(grad: Tensor, param: Tensor, clip: Scalar = 1e-2, eps: Scalar = 1e-3) -> Tensor:
    """Adaptive gradient clipping, a new tensor: no unit's gradient is larger than λ times the unit itself.

    Brock et al., 2021 (NFNets, arXiv:2102.06171):  g_i ← g_i · min(1, λ·max(‖θ_i‖, ε)/‖g_i‖), unit by unit.

    Args:
        grad: g.
        param: θ, of the same shape; output units along the first dimension.
        clip: λ; 10⁻² in the paper.
        eps: ε, so that units that start at zero can move; 10⁻³ in the paper.
    """
    return grad * clip_ratio(unit_norm(grad), maximum(unit_norm(param), eps) * clip)


def clip_by_norm(grad: Tensor, max_norm: Scalar) -> Tensor:
    """g · min(1, c/‖g‖) as a new tensor, with the norm of the whole tensor."""
    return grad * clip_ratio(torch.linalg.vector_norm(grad), max_norm)


def clip_by_value(grad: Tensor, limit: Scalar) -> Tensor:
    """g with every element in [−limit, limit], a new tensor. Real; pass real views of complex tensors."""
    limit = as_like(limit, grad)
    return grad.clamp(-limit, limit)  # type: ignore[arg-type]
