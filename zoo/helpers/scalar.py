"""Arithmetic that accepts a Python float or a 0-dim tensor, and answers in the kind it was given.

Hyperparameters are Python floats in the eager engines and 0-dim tensors in a compiled one. A rule that uses
these functions (and plain operators) for its numbers need not know which: nothing here reads a tensor's
value, so nothing waits for a device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar, overload

import torch
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function

__all__ = [
    "Scalar",
    "add_",
    "add_scaled",
    "addcdiv_",
    "addcmul_",
    "as_like",
    "is_batched",
    "maximum",
    "minimum",
    "per_tensor",
    "sqrt",
    "where",
]

Scalar = float | Tensor
"""A number of the step: a Python float, or a 0-dim tensor of the dtype of the computation."""

P = ParamSpec("P")
R = TypeVar("R")


def per_tensor(function: Callable[P, R]) -> Callable[P, R]:
    """Let argument types with ``__torch_function__`` take over a call, as torch's own functions do.

    For functions that look at a tensor's shape (its number of elements or dimensions): a type that stands for
    several tensors is asked to run the function once a tensor. Plain tensors go straight through.
    """

    @wraps(function)
    def overridable(*args: P.args, **kwargs: P.kwargs) -> R:
        relevant = args + tuple(kwargs.values())
        if has_torch_function(relevant):
            return handle_torch_function(overridable, relevant, *args, **kwargs)
        return function(*args, **kwargs)

    return overridable


def is_batched(x: Tensor) -> bool:
    """Whether a tensor is one of a stack that ``torch.func.vmap`` runs over.

    ``lerp_``, ``addcmul_`` and ``addcdiv_`` have no rule for stacks: torch warns and runs them one by one.
    """
    return isinstance(x, Tensor) and torch._C._functorch.is_batchedtensor(x)


@overload
def as_like(scalar: Tensor, like: Tensor) -> Tensor: ...
@overload
def as_like(scalar: float, like: Tensor) -> float: ...
@overload
def as_like(scalar: Scalar, like: Tensor) -> Scalar: ...
def as_like(scalar: Scalar, like: Tensor) -> Scalar:
    """The number in the dtype of another tensor, if it is a tensor: it must not widen a 0-dim float32.

    Args:
        scalar: a float (returned as it is) or a 0-dim tensor.
        like: the tensor whose dtype the result of an operation with both should have.
    """
    return scalar.to(like.dtype) if isinstance(scalar, Tensor) and scalar.dtype != like.dtype else scalar


@overload
def sqrt(x: Tensor) -> Tensor: ...
@overload
def sqrt(x: float) -> float: ...
@overload
def sqrt(x: Scalar) -> Scalar: ...
def sqrt(x: Scalar) -> Scalar:
    """Square root of a float or a tensor."""
    # pow and not math.sqrt: torch's optimizers write ``x ** 0.5``, which may differ in the last bit.
    return x.sqrt() if isinstance(x, Tensor) else math.pow(x, 0.5)


@overload
def minimum(a: Tensor, b: Scalar) -> Tensor: ...
@overload
def minimum(a: Scalar, b: Tensor) -> Tensor: ...
@overload
def minimum(a: float, b: float) -> float: ...
@overload
def minimum(a: Scalar, b: Scalar) -> Scalar: ...
def minimum(a: Scalar, b: Scalar) -> Scalar:
    """The smaller of two numbers, elementwise where one is a tensor; NaN where either is NaN."""
    if isinstance(a, Tensor):
        return torch.minimum(a, b) if isinstance(b, Tensor) else a.clamp(max=b)
    if isinstance(b, Tensor):
        return b.clamp(max=a)
    return a if a <= b or a != a else b


@overload
def maximum(a: Tensor, b: Scalar) -> Tensor: ...
@overload
def maximum(a: Scalar, b: Tensor) -> Tensor: ...
@overload
def maximum(a: float, b: float) -> float: ...
@overload
def maximum(a: Scalar, b: Scalar) -> Scalar: ...
def maximum(a: Scalar, b: Scalar) -> Scalar:
    """The larger of two numbers, elementwise where one is a tensor; NaN where either is NaN."""
    if isinstance(a, Tensor):
        return torch.maximum(a, b) if isinstance(b, Tensor) else a.clamp(min=b)
    if isinstance(b, Tensor):
        return b.clamp(min=a)
    return a if a >= b or a != a else b


@overload
def where(condition: Tensor, a: Scalar, b: Scalar) -> Tensor: ...
@overload
def where(condition: bool | Tensor, a: Scalar, b: Scalar) -> Scalar: ...
def where(condition: bool | Tensor, a: Scalar, b: Scalar) -> Scalar:
    """``a`` where the condition holds, else ``b``: a choice for a bool, ``torch.where`` for a tensor.

    Two floats under a tensor condition give a tensor of the default dtype.
    """
    if isinstance(condition, Tensor):
        return torch.where(condition, a, b)
    return a if condition else b


def add_(x: Tensor, y: Tensor, scale: Scalar) -> Tensor:
    """x ← x + scale·y in place; one fused pass for a float ``scale``. Returns ``x``."""
    scale = as_like(scale, x)
    return x.add_(y * scale) if isinstance(scale, Tensor) else x.add_(y, alpha=scale)


def add_scaled(x: Tensor, y: Tensor, scale: Scalar) -> Tensor:
    """x + scale·y as a new tensor; one fused pass for a float ``scale``."""
    scale = as_like(scale, x)
    return x + y * scale if isinstance(scale, Tensor) else x.add(y, alpha=scale)


def addcmul_(x: Tensor, a: Tensor, b: Tensor, scale: Scalar = 1.0) -> Tensor:
    """x ← x + scale·a·b in place, where ``scale`` may be a tensor as well. Returns ``x``."""
    scale = as_like(scale, x)
    if is_batched(x):
        return x.add_(a * scale * b)
    # (scale·a)·b is the order in which torch's kernel multiplies, so both kinds round alike.
    return x.addcmul_(a * scale, b) if isinstance(scale, Tensor) else x.addcmul_(a, b, value=scale)


def addcdiv_(x: Tensor, a: Tensor, b: Tensor, scale: Scalar = 1.0) -> Tensor:
    """x ← x + scale·a/b in place, where ``scale`` may be a tensor as well. Returns ``x``."""
    scale = as_like(scale, x)
    if is_batched(x):
        return x.add_(a * scale / b)
    return x.addcdiv_(a * scale, b) if isinstance(scale, Tensor) else x.addcdiv_(a, b, value=scale)
