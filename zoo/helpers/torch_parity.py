"""What torch's optimizers do around their formulas: maximize, real views, who is trained, which kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.optim.optimizer import _default_to_fused_or_foreach

__all__ = ["Trainable", "collect_trainable", "default_to_fused_or_foreach", "maximize", "view_as_real"]


class Trainable(NamedTuple):
    """The parameters that have a gradient, in their order."""

    params: list[Tensor]
    grads: list[Tensor]
    indices: list[int]
    """Where each stands among all parameters."""
    has_complex: bool


def maximize(grad: Tensor) -> Tensor:
    """−g as a new tensor: the gradient of the objective to minimize instead."""
    return -grad


def view_as_real(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Complex tensors as real views [..., 2] of the same memory; the others as they are."""
    return [torch.view_as_real(x) if x.is_complex() else x for x in tensors]


def collect_trainable(params: Iterable[Tensor], *, allow_sparse: bool = False) -> Trainable:
    """The parameters with a gradient, as torch's optimizers collect them at each step.

    Args:
        params: all parameters of a group.
        allow_sparse: whether sparse gradients are taken.

    Raises:
        RuntimeError: for a sparse gradient that is not allowed.
    """
    found = Trainable([], [], [], False)
    has_complex = False
    for index, param in enumerate(params):
        grad = param.grad
        if grad is None:
            continue
        if grad.layout != torch.strided and not allow_sparse:
            raise RuntimeError(
                f"parameter {index} of shape {tuple(param.shape)} has a sparse gradient, which this "
                "optimizer does not support; make it dense (for nn.Embedding: sparse=False)"
            )
        found.params.append(param)
        found.grads.append(grad)
        found.indices.append(index)
        has_complex |= param.is_complex()
    return found._replace(has_complex=has_complex)


def default_to_fused_or_foreach(
    params: Sequence[Tensor], *, differentiable: bool = False, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether torch would run its fused, or else its foreach kernels when nobody chose: (fused, foreach).

    Only for plain tensors and parameters, all on devices with such kernels, and never if differentiable.
    """
    # torch's own answer, so that it stays torch's when torch changes.
    return _default_to_fused_or_foreach(list(params), differentiable, use_fused)
