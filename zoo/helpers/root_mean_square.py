"""Root mean square of a tensor, and the clips that are built on it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .clip import clip_ratio
from .scalar import Scalar, as_like, maximum, per_tensor

__all__ = ["foreach_rms", "foreach_rms_clip", "rms", "rms_clip", "stable_divisor"]


@per_tensor
def rms(x: Tensor) -> Tensor:
    """√(mean |x|²) as a 0-dim real tensor; 0 for an empty tensor."""
    # By way of the norm: no tensor of squares is ever made, and an empty tensor has norm 0, not mean NaN.
    norm: Tensor = torch.linalg.vector_norm(x) * max(x.numel(), 1) ** -0.5
    return norm


def foreach_rms(tensors: Sequence[Tensor]) -> list[Tensor]:
    """:func:`rms` of every tensor of a list, with one fused norm."""
    if not tensors:
        return []
    norms = torch._foreach_norm(list(tensors))
    torch._foreach_mul_(norms, [max(x.numel(), 1) ** -0.5 for x in tensors])
    return list(norms)


def rms_clip(update: Tensor, threshold: Scalar = 1.0, lr: Scalar = 1.0) -> Tensor:
    """u / max(1, RMS(u)/(d·lr)) as a new tensor: its RMS is at most d times the learning rate.

    Shazeer & Stern, 2018 (arXiv:1804.04235), section 6: the update before lr is clipped at d.

    Args:
        update: u, with lr already in it (or ``lr`` left at 1).
        threshold: d; 1 in the paper.
        lr: the learning rate that u contains; 0 gives an update of zeros.
    """
    return update * clip_ratio(rms(update), threshold * lr)


def foreach_rms_clip(updates: Sequence[Tensor], threshold: Scalar = 1.0, lr: Scalar = 1.0) -> list[Tensor]:
    """:func:`rms_clip` of every tensor of a list; each has its own RMS."""
    if not updates:
        return []
    bound = threshold * lr
    return list(torch._foreach_mul(list(updates), [clip_ratio(size, bound) for size in foreach_rms(updates)]))


def stable_divisor(grad: Tensor, avg_sq: Tensor, eps: Scalar = 1e-8) -> Tensor:
    """max(1, RMS(g/√v)) as a 0-dim tensor: divide the learning rate of this tensor by it.

    StableAdamW (Wortsman et al., 2023, arXiv:2304.13013): steps shrink while the second moment has not yet
    seen how large the gradient became.

    Args:
        grad: g.
        avg_sq: v, debiased, with g already in it.
        eps: a floor for √v.
    """
    return rms(grad / maximum(avg_sq.sqrt(), as_like(eps, avg_sq))).clamp(min=1.0)
