"""Gradient centralization. Yong et al., 2020, arXiv:2004.01461."""

from __future__ import annotations

from torch import Tensor

from .scalar import per_tensor

__all__ = ["centralize"]


@per_tensor
def centralize(grad: Tensor) -> Tensor:
    """g minus its mean over all dimensions but the first, a new tensor: every output unit has mean 0.

    Tensors of fewer than two dimensions (biases, scales) are returned as they are.
    """
    if grad.ndim < 2:
        return grad
    return grad - grad.mean(dim=tuple(range(1, grad.ndim)), keepdim=True)
