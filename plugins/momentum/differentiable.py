"""What rules need that look at a parameter or state otherwise than linearly, so that autograd can flow through them."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["readable"]


def readable(x: Tensor) -> Tensor:
    """``x`` itself; a copy where autograd records, because backward needs the values that the step is going to overwrite."""
    return x.clone() if torch.is_grad_enabled() and x.requires_grad else x
