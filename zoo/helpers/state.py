"""Making state tensors, and one look over many gradients."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["all_finite", "zero_scalar", "zeros_like"]


def zeros_like(param: Tensor) -> Tensor:
    """Zeros with the parameter's shape, dtype, device and memory order: a state tensor as torch makes it."""
    return torch.zeros_like(param, memory_format=torch.preserve_format)


def zero_scalar(param: Tensor) -> Tensor:
    """A 0-dim zero on the parameter's device, real and at least float32: a running number of a whole tensor."""
    dtype = torch.float64 if param.dtype in (torch.float64, torch.complex128) else torch.float32
    return torch.zeros((), dtype=dtype, device=param.device)


def all_finite(tensors: Sequence[Tensor]) -> Tensor:
    """A 0-dim bool: whether no element of any tensor is NaN or infinite. All on one device: no sync."""
    flags = [torch.isfinite(tensor.coalesce().values() if tensor.is_sparse else tensor).all() for tensor in tensors]
    device = flags[0].device
    return torch.stack([flag.to(device) for flag in flags]).all()
