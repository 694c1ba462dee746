"""Cautious masking: keep the part of an update that agrees in sign with the gradient."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from .scalar import per_tensor

__all__ = ["CautiousVariant", "cautious", "signs_agree"]

CautiousVariant = Literal["mean", "count", "plain", "grams"]
"""``mean``: divided by the kept share, at least 10⁻³. ``count``: times n/(kept + 1). ``plain``: not rescaled.
``grams``: every element keeps its size and takes the gradient's sign."""


def signs_agree(a: Tensor, b: Tensor) -> Tensor:
    """Whether a and b have the same nonzero sign, elementwise; a bool tensor."""
    # sign(a)·b and not a·b: the product of two tiny numbers underflows to zero.
    return a.sign() * b > 0


def cautious(update: Tensor, grad: Tensor, variant: CautiousVariant = "mean") -> Tensor:
    r"""Mask an update by its sign agreement with the gradient; a new tensor of the same shape and dtype.

    Liang et al., 2024 (arXiv:2411.16085): φ = 1[u∘g > 0], u ← u∘φ, rescaled so that the size of the whole
    update is kept:

    - ``mean``: u∘φ / max(mean φ, 10⁻³), the form in wide use (timm; also the authors' later code)
    - ``count``: u∘φ · n/(Σφ + 1), the authors' first code
    - ``plain``: u∘φ, not rescaled
    - ``grams``: sign(g)∘\|u\| (Cao, Li & Song, 2024, arXiv:2412.17107)

    Args:
        update: what will be subtracted from the parameter.
        grad: the gradient, of the same shape. Real; pass real views of complex tensors.
        variant: how to rescale.
    """
    if variant == "grams":
        return grad.sign() * update.abs()
    agree = signs_agree(update, grad)
    kept = torch.where(agree, update, 0.0)
    if variant == "plain":
        return kept
    if variant == "mean":
        return kept / agree.to(update.dtype).mean().clamp(min=1e-3)
    if variant == "count":
        return kept * _inverse_share(agree.to(update.dtype))
    raise ValueError(f"cautious: unknown variant {variant!r}; choose 'mean', 'count', 'plain' or 'grams'")


@per_tensor
def _inverse_share(mask: Tensor) -> Tensor:
    """n/(Σφ + 1)."""
    return mask.numel() / (mask.sum() + 1)
