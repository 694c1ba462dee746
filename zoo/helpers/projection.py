"""AdamP's and SGDP's projection for scale-invariant weights. Heo et al., 2021, arXiv:2006.08217."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .scalar import Scalar, as_like, maximum, per_tensor

__all__ = ["project_scale_invariant"]


@per_tensor
def project_scale_invariant(
    update: Tensor,
    param: Tensor,
    grad: Tensor,
    delta: Scalar = 0.1,
    wd_ratio: Scalar = 0.1,
    eps: Scalar = 1e-8,
) -> tuple[Tensor, Tensor]:
    """The update without its radial part, where gradient and parameter are nearly orthogonal.

    Weights before a normalization do not change the loss when they are scaled, so their gradient is
    orthogonal to them: abs cos(θ, g) < δ/√n. This is looked for channel by channel (the first dimension)
    and, failing that, in the whole layer. Tensors of fewer than two dimensions are never projected. No value
    is read: both outcomes are computed and chosen between.

    Args:
        update: what to project, of the parameter's shape.
        param: θ.
        grad: g.
        delta: δ; 0.1 in the paper.
        wd_ratio: by how much decay shrinks where the update was projected; 0.1 in the paper.
        eps: keeps θ = 0 and g = 0 finite.

    Returns:
        The update (a new tensor if it has two or more dimensions), and the factor for this tensor's weight
        decay, 0-dim: ``wd_ratio`` where it was projected, else 1.
    """
    one = torch.ones((), dtype=update.dtype, device=update.device)
    if update.ndim < 2 or update.numel() == 0:
        return update, one
    ratio = one * as_like(wd_ratio, one)
    by_channel, channels = _projected(update, param, grad, update.shape[0], delta, eps)
    by_layer, layer = _projected(update, param, grad, 1, delta, eps)
    projected = torch.where(channels, by_channel, torch.where(layer, by_layer, update))
    return projected, torch.where(channels | layer, ratio, one)


def _projected(
    update: Tensor, param: Tensor, grad: Tensor, rows: int, delta: Scalar, eps: Scalar
) -> tuple[Tensor, Tensor]:
    """The update without its part along each row of θ, and whether g is orthogonal enough to every row."""
    u, p, g = (x.reshape(rows, -1) for x in (update, param, grad))
    eps = as_like(eps, p)
    size = torch.linalg.vector_norm(p, dim=1, keepdim=True)
    norms = maximum(size, eps) * maximum(torch.linalg.vector_norm(g, dim=1, keepdim=True), eps)
    cosine = (p * g).sum(1, keepdim=True).abs() / norms
    orthogonal = cosine.amax() < as_like(delta, p) / math.sqrt(p.shape[1])
    unit = p / (size + eps)
    return (u - unit * (unit * u).sum(1, keepdim=True)).reshape(update.shape), orthogonal
