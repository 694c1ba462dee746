"""An update that is not multiplied out: the numbers stay apart until the parameter is written."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .scalar import Scalar, as_like

__all__ = ["Scaled", "root_plus", "scaled"]


class Scaled(NamedTuple):
    """scale · numerator / denominator (or scale · numerator), to be subtracted from a parameter.

    Subtracting it is one operation on the parameter instead of three; :meth:`tensor` multiplies it out for
    whoever needs to look at it.
    """

    numerator: Tensor
    scale: Scalar
    denominator: Tensor | None = None

    def tensor(self) -> Tensor:
        """The update as a tensor."""
        product = self.numerator * as_like(self.scale, self.numerator)
        return product if self.denominator is None else product / self.denominator

    def subtract_from_(self, param: Tensor) -> Tensor:
        """θ ← θ − update in place. Returns ``param``."""
        if isinstance(self.scale, Tensor):
            return param.sub_(self.tensor())
        if self.denominator is None:
            return param.add_(self.numerator, alpha=-self.scale)  # add_ and not sub_: it takes sparse tensors
        return param.addcdiv_(self.numerator, self.denominator, value=-self.scale)


def scaled(numerator: Tensor, scale: Scalar, over: Tensor | None = None) -> Scaled:
    """The update scale · numerator / over; the tensors must not be changed after it is returned."""
    return Scaled(numerator, scale, over)


def root_plus(avg_sq: Tensor, scale: Scalar, eps: Scalar) -> Tensor:
    """√v/scale + ε as a new tensor: the denominator of an adaptive rule."""
    root = avg_sq.sqrt()
    if (
        type(root) is Tensor
        and isinstance(scale, float)
        and isinstance(eps, float)
        and not torch.compiler.is_compiling()
    ):
        # One pass over the root instead of two.
        return torch.rsub(root, eps, alpha=-1.0 / scale)
    return root / as_like(scale, root) + as_like(eps, root)
