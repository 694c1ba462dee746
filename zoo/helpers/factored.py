"""Adafactor's factored second moment: row and column means. Shazeer & Stern, 2018, arXiv:1804.04235."""

from __future__ import annotations

import torch
from torch import Tensor

from .ema import ema_
from .scalar import Scalar, as_like, maximum, per_tensor

__all__ = ["factored_ema_", "factored_moment", "factored_rsqrt", "factored_zeros", "is_factorable"]


@per_tensor
def is_factorable(param: Tensor, min_size: int = 1) -> bool:
    """Whether the last two dimensions make a matrix, each of at least ``min_size`` (128 in some code)."""
    return param.ndim >= 2 and min(param.shape[-2:]) >= min_size


@per_tensor
def factored_zeros(param: Tensor) -> tuple[Tensor, Tensor]:
    """Zeros for the row and column statistics of a tensor [..., r, c]: shapes [..., r, 1] and [..., 1, c].

    Raises:
        ValueError: for a tensor of fewer than two dimensions.
    """
    if param.ndim < 2:
        raise ValueError(
            f"factored_zeros: a tensor of shape {tuple(param.shape)} has no rows and columns; keep all of v"
        )
    *stack, rows, columns = param.shape
    return param.new_zeros(*stack, rows, 1), param.new_zeros(*stack, 1, columns)


@per_tensor
def factored_ema_(row_var: Tensor, col_var: Tensor, grad: Tensor, weight: Scalar, eps: Scalar = 0.0) -> None:
    """R ← R + w·(mean_c g² + ε − R) and C ← C + w·(mean_r g² + ε − C) in place.

    Args:
        row_var: R [..., r, 1], changed in place.
        col_var: C [..., 1, c], changed in place.
        grad: g [..., r, c]; leading dimensions are a stack of matrices.
        weight: w = 1 − β̂₂, the weight of the new value.
        eps: ε₁ added to the squares (10⁻³⁰ in the paper; torch adds none).
    """
    for var, dim in ((row_var, -1), (col_var, -2)):
        # By way of the norm: g² is never made as a whole.
        mean = torch.linalg.vector_norm(grad, dim=dim, keepdim=True).square() / max(grad.size(dim), 1)
        ema_(var, mean + as_like(eps, mean), weight)


def factored_moment(row_var: Tensor, col_var: Tensor) -> Tensor:
    """V̂ = R·C / mean(R) [..., r, c]: exact where the moment has rank 1; zero where R or C is."""
    scale = row_var.mean(dim=-2, keepdim=True)
    # R is divided first: R·C of small gradients underflows.
    return row_var / scale.clamp(min=torch.finfo(row_var.dtype).tiny) * col_var


def factored_rsqrt(row_var: Tensor, col_var: Tensor, eps: Scalar = 0.0) -> Tensor:
    """1/√max(V̂, ε²) [..., r, c], finite also where V̂ is zero: multiply the gradient by it.

    Args:
        row_var: R [..., r, 1].
        col_var: C [..., 1, c].
        eps: the least √V̂; torch's Adafactor takes ``finfo.eps``.
    """
    moment = factored_moment(row_var, col_var)
    floor = maximum(as_like(eps * eps, moment), torch.finfo(moment.dtype).tiny)
    return maximum(moment, floor).rsqrt()
