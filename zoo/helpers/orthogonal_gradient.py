"""OrthoGrad: the gradient without its part along the parameter. Prieto et al., 2025, arXiv:2501.04697."""

from __future__ import annotations

import torch
from torch import Tensor

from .scalar import Scalar, as_like, per_tensor

__all__ = ["orthograd"]


@per_tensor
def orthograd(grad: Tensor, param: Tensor, eps: Scalar = 1e-30) -> Tensor:
    """g⊥ · ‖g‖/‖g⊥‖ with g⊥ = g − (θ·g)/(θ·θ + ε)·θ, as a new tensor of the gradient's norm.

    A gradient along the parameter has no orthogonal part: the result is zero, not amplified rounding noise. A
    tensor of one element has no orthogonal direction and is returned as it is, or it could never train.

    Args:
        grad: g. Complex tensors count as twice as many real numbers.
        param: θ, of the same shape.
        eps: keeps θ = 0 finite.
    """
    if grad.numel() < 2:
        return grad
    g, p = (torch.view_as_real(grad), torch.view_as_real(param)) if grad.is_complex() else (grad, param)
    square = ((p * p).sum() + as_like(eps, p)).clamp(min=torch.finfo(p.dtype).tiny)
    orthogonal = g - p * ((p * g).sum() / square)
    norm, rest = torch.linalg.vector_norm(g), torch.linalg.vector_norm(orthogonal)
    noise = norm * (4 * torch.finfo(g.dtype).eps)
    result = orthogonal * torch.where(rest > noise, norm / torch.where(rest > noise, rest, 1.0), 0.0)
    return torch.view_as_complex(result) if grad.is_complex() else result
