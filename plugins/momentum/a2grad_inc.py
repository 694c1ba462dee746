r"""A2Grad-inc. Deng, Cheng & Lan, "Optimal Adaptive and Accelerated SGD", 2018, arXiv:1810.00553."""

from __future__ import annotations

from torch import Tensor

from zoo import Granularity, Scalars, State, helpers

from .a2grad import A2Grad, A2GradConfig


class A2GradIncConfig(A2GradConfig):
    """Options of A2Grad-inc."""


class A2GradInc(A2Grad[A2GradIncConfig], rule=Granularity.ELEMENTWISE):
    r"""A2Grad-uni with weights that increase towards the present: old noise is forgotten quadratically.

    .. math:: v_t = \left( \tfrac{t-1}{t} \right)^2 v_{t-1} + δ_t^2, \qquad h_t = \sqrt{v_t}

    All else, the state and the deviations are those of A2Grad-uni. Good for: noise that falls during training.
    """

    def noise_scale(self, noise_sq: Tensor, s: State, c: Scalars) -> Tensor:
        v: Tensor = s.v_k * helpers.as_like((1 - 1 / c.t) ** 2, s.v_k) + noise_sq
        s.v_k = v
        return v.sqrt()
