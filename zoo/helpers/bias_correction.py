"""Bias corrections of moving averages that start at zero."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .scalar import Scalar, where

__all__ = ["adam_debias", "debias", "debias_beta"]

_TINY = 1e-38
"""Stands for β = 0, so that ln β is finite."""


def debias(beta: Scalar, step: Scalar) -> Scalar:
    """1 − βᵗ: what an average of t values with decay β lacks; divide the average by it.

    Kingma & Ba, 2015, section 3. Exactly 1 − β at step 1; tensors lose no digits to cancellation at any step.

    Args:
        beta: β in [0, 1].
        step: t ≥ 1, a number or a 0-dim tensor.

    Returns:
        A float if both are numbers, else a tensor.
    """
    if isinstance(beta, Tensor):
        log_power = step * beta.clamp(min=torch.finfo(beta.dtype).tiny).log()
    elif isinstance(step, Tensor):
        log_power = step * math.log(max(beta, _TINY))
    else:
        return 1.0 - float(beta**step)
    # −expm1(t·ln β) and not 1 − βᵗ: in float32 the latter is off by 6e-5 for β = 0.999 at step 1.
    return where(step == 1, 1.0 - beta, -torch.expm1(log_power))


def debias_beta(beta: Scalar, step: Scalar) -> Scalar:
    """β̂ = (βᵗ − β)/(βᵗ − 1): the decay of an average without bias. 0 at step 1, β in the end.

    Shazeer & Stern, 2018 (arXiv:1804.04235), section 7.1; StableAdamW uses it for both moments. An average
    updated with β̂ needs no division by :func:`debias`.
    """
    return beta * debias(beta, step - 1) / debias(beta, step)


def adam_debias(beta1: Scalar, beta2: Scalar, step: Scalar, *, adamd: bool = False) -> tuple[Scalar, Scalar]:
    """The corrections (1 − β₁ᵗ, 1 − β₂ᵗ) of Adam's numerator and denominator.

    Args:
        beta1: β₁, decay of the first moment.
        beta2: β₂, decay of the second moment.
        step: t ≥ 1.
        adamd: correct the denominator only: the first is 1 (AdamD, St John 2021, arXiv:2110.10828).
    """
    return (1.0 if adamd else debias(beta1, step)), debias(beta2, step)
