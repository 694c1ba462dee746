"""Exponential moving averages and momentum, in place."""

from __future__ import annotations

from torch import Tensor

from .scalar import Scalar, add_, add_scaled, addcmul_, as_like, is_batched

__all__ = ["ema_", "ema_sq_", "momentum_", "nesterov", "nesterov_ema"]


def ema_(avg: Tensor, x: Tensor, weight: Scalar) -> Tensor:
    """m ← m + w·(x − m) in place: the first moment for w = 1 − β₁. Returns ``avg``.

    Args:
        avg: the running average m, changed in place.
        x: the new value, of the same shape.
        weight: w, the weight of the new value (1 − β, not β).
    """
    # lerp and not mul + add: it is what torch's Adam does, and m = x stays exactly x.
    weight = as_like(weight, avg)
    return avg.copy_(avg.lerp(x, weight)) if is_batched(avg) else avg.lerp_(x, weight)


def ema_sq_(avg_sq: Tensor, x: Tensor, beta: Scalar) -> Tensor:
    """v ← β·v + (1 − β)·x² in place: the second moment. Returns ``avg_sq``.

    A complex pair is two numbers: pass real views (``torch.view_as_real``) of both, as torch does.

    Args:
        avg_sq: the running average v, changed in place.
        x: the new value, of the same shape.
        beta: β, the weight of the old average.
    """
    return addcmul_(avg_sq.mul_(beta), x, x, 1 - beta)


def momentum_(buffer: Tensor, grad: Tensor, momentum: Scalar, dampening: Scalar = 0.0) -> Tensor:
    """b ← μ·b + (1 − τ)·g in place: heavy-ball momentum as torch's SGD has it. Returns ``buffer``.

    Args:
        buffer: the momentum buffer b, changed in place. torch starts it at the first gradient, undampened.
        grad: the gradient g.
        momentum: μ.
        dampening: τ.
    """
    return add_(buffer.mul_(momentum), grad, 1 - dampening)


def nesterov(buffer: Tensor, grad: Tensor, momentum: Scalar) -> Tensor:
    """g + μ·b: Nesterov's look-ahead on a heavy-ball buffer, as torch's SGD has it. A new tensor."""
    return add_scaled(grad, buffer, momentum)


def nesterov_ema(avg: Tensor, grad: Tensor, beta: Scalar) -> Tensor:
    """(1 − β)·g + β·m: Nesterov's look-ahead on a moving average (Muon). A new tensor."""
    return grad.lerp(avg, as_like(beta, grad))
