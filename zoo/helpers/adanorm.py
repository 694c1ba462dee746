"""AdaNorm: short gradients are lengthened to their running norm. Dubey et al., 2023, arXiv:2210.06364."""

from __future__ import annotations

import torch
from torch import Tensor

from .ema import ema_
from .scalar import Scalar

__all__ = ["adanorm_"]


def adanorm_(grad: Tensor, running_norm: Tensor, gamma: Scalar = 0.95) -> Tensor:
    """e ← γ·e + (1 − γ)·‖g‖ in place; returns g · max(1, e/‖g‖) as a new tensor.

    A zero gradient stays zero.

    Args:
        grad: g, left alone.
        running_norm: e, 0-dim and real, changed in place; zero at the start.
        gamma: γ; 0.95 in the paper.
    """
    norm = torch.linalg.vector_norm(grad)
    ema_(running_norm, norm, 1 - gamma)
    shorter = (norm > 0) & (running_norm > norm)
    return grad * torch.where(shorter, running_norm / torch.where(shorter, norm, 1.0), 1.0)
