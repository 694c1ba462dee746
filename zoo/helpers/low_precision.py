"""Small updates of parameters in low precision that are not lost: Kahan summation, stochastic rounding."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["kahan_sub_", "stochastic_round_"]

_LOW_16 = 0xFFFF


def kahan_sub_(target: Tensor, param: Tensor, update: Tensor, compensation: Tensor) -> Tensor:
    """θ ← θ − u in place, and what rounding took away is kept for the next step. Returns ``target``.

    Kahan, 1965: k ← k − u;  θ' = round(θ + k);  k ← k + (θ − θ').

    Args:
        target: the parameter as stored, changed in place.
        param: its values in the dtype of the computation, left alone unless it is ``target`` itself.
        update: what to subtract, in the dtype of the computation.
        compensation: k, in the dtype of the computation, changed in place; zero at the start.
    """
    compensation.sub_(update)
    rounded = _rounded(param + compensation, target.dtype)
    compensation.add_(param - rounded)
    return target.copy_(rounded)


def _rounded(values: Tensor, dtype: torch.dtype) -> Tensor:
    """The nearest numbers of a dtype."""
    if not torch.compiler.is_compiling():
        return values.to(dtype)
    # Compilers drop a cast to a narrow dtype and back, and with it the rounding: round by arithmetic instead.
    if dtype == torch.bfloat16:
        bits = values.view(torch.int32)
        nearest = ((bits + 0x7FFF + ((bits >> 16) & 1)) & ~_LOW_16).view(torch.float32)
    elif dtype == torch.float16:
        spacing = _half_spacing(values)
        nearest = (values / spacing).round() * spacing
    else:
        return values.to(dtype)
    return torch.where(torch.isfinite(values), nearest, values)


def stochastic_round_(target: Tensor, values: Tensor, noise: Tensor) -> Tensor:
    """Write float32 values into bfloat16 or float16, rounded up or down at random, right on average.

    The chance of rounding away from zero is the share of the gap that the value has crossed. Infinities and
    NaN are written as they are. A target of another dtype is copied to. Returns ``target``.

    Args:
        target: where to write, changed in place.
        values: float32, of the same shape.
        noise: int32, uniform in [0, 2¹⁶), of the same shape.
    """
    if target.dtype == torch.bfloat16:
        # bfloat16 is the upper half of a float32: noise in the lower half carries with the right chance.
        rounded = ((values.view(torch.int32) + noise) & ~_LOW_16).view(torch.float32)
    elif target.dtype == torch.float16:
        spacing = _half_spacing(values)
        scaled = values.abs() / spacing
        low = scaled.floor()
        up = noise.to(torch.float32) * 2.0**-16 < scaled - low
        rounded = torch.copysign((low + up.to(torch.float32)) * spacing, values)
    else:
        return target.copy_(values)
    return target.copy_(torch.where(torch.isfinite(values), rounded, values))


def _half_spacing(values: Tensor) -> Tensor:
    """The distance between neighbours in float16: 2^(exponent − 10), and 2⁻²⁴ below its normal range."""
    exponent = ((values.view(torch.int32) >> 23) & 0xFF).clamp(min=127 - 14)
    return ((exponent - 10) << 23).view(torch.float32)
