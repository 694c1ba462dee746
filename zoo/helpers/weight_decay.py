"""Weight decay: L2 into the gradient, decoupled, independent of the learning rate, cautious."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from .scalar import Scalar, add_scaled, as_like

__all__ = ["DecayMode", "cautious_decay", "decay_", "decay_fraction", "l2_decay"]

DecayMode = Literal["decoupled", "independent"]
"""``decoupled``: scaled by the learning rate (AdamW). ``independent``: not scaled by it."""


def l2_decay(grad: Tensor, param: Tensor, weight_decay: Scalar) -> Tensor:
    """g + λ·θ as a new tensor: the gradient of the loss plus λ/2·‖θ‖². ``grad`` is left alone."""
    return add_scaled(grad, param, weight_decay)


def decay_fraction(lr: Scalar, weight_decay: Scalar, mode: DecayMode = "decoupled", ratio: Scalar = 1.0) -> Scalar:
    """The fraction of a parameter that one step takes away: lr·λ·ratio (decoupled) or λ·ratio (independent).

    Args:
        lr: the learning rate, a float or a tensor.
        weight_decay: λ.
        mode: whether lr scales the decay (Loshchilov & Hutter, 2019, arXiv:1711.05101) or not.
        ratio: a factor for this step (a schedule's multiplier, AdamP's ``wd_ratio``).
    """
    fraction = weight_decay * lr if mode == "decoupled" else weight_decay
    # A ratio of exactly the number 1 must not turn a float into a tensor nor cost an operation.
    return fraction if not isinstance(ratio, Tensor) and ratio == 1.0 else fraction * ratio


def decay_(param: Tensor, fraction: Scalar) -> Tensor:
    """θ ← (1 − fraction)·θ in place, with the fraction from :func:`decay_fraction`. Returns ``param``."""
    return param.mul_(1 - fraction)


def cautious_decay(param: Tensor, update: Tensor, fraction: Scalar) -> Tensor:
    """fraction·θ where the update does not move θ away from zero, else 0: what to add to the update.

    Cautious weight decay (Chen et al., 2025, arXiv:2510.12402): θ decays by 1[u∘θ ≥ 0]·θ, only where update
    and parameter do not differ in sign, so that it never works against the optimizer.

    Args:
        param: θ.
        update: what will be subtracted from θ.
        fraction: from :func:`decay_fraction`.
    """
    # sign(u)·θ and not u·θ: the product of two tiny numbers underflows to zero.
    return torch.where(update.sign() * param >= 0, param * as_like(fraction, param), 0.0)
