"""The trust ratio of layer-wise adaptive rates: LARS (arXiv:1708.03888) and LAMB (arXiv:1904.00962)."""

from __future__ import annotations

import torch
from torch import Tensor

from .scalar import Scalar, as_like, maximum, minimum

__all__ = ["trust_ratio"]


def trust_ratio(
    param: Tensor, update: Tensor, lr: Scalar = 1.0, lower: Scalar | None = None, upper: Scalar | None = None
) -> Tensor:
    """‖θ‖/‖u‖ as a 0-dim tensor, 1 where either is zero: multiply the update by it.

    Args:
        param: θ.
        update: u, with lr already in it (or ``lr`` left at 1).
        lr: the learning rate that u contains: the ratio is that of u/lr.
        lower: the least ratio, if any.
        upper: the largest ratio, if any (10 in common LAMB code).
    """
    size, norm = torch.linalg.vector_norm(param), torch.linalg.vector_norm(update)
    defined = (size > 0) & (norm > 0)
    ratio = torch.where(defined, size * lr / torch.where(defined, norm, 1.0), 1.0)
    if lower is not None:
        ratio = maximum(ratio, lower)
    if upper is not None:
        ratio = minimum(ratio, upper)
    return as_like(ratio, update)
