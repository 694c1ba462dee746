r"""A2Grad-uni. Deng, Cheng & Lan, "Optimal Adaptive and Accelerated SGD", 2018, arXiv:1810.00553."""

from __future__ import annotations

from torch import Tensor

from zoo import Granularity, Scalars, State

from .a2grad import A2Grad, A2GradConfig


class A2GradUniConfig(A2GradConfig):
    """Options of A2Grad-uni."""


class A2GradUni(A2Grad[A2GradUniConfig], rule=Granularity.ELEMENTWISE):
    r"""Accelerated SGD whose step falls with all the gradient noise there has been, summed uniformly.

    .. math::
        δ_t &= g_t - \bar g_t, \qquad v_t = v_{t-1} + δ_t^2, \qquad h_t = \sqrt{v_t}, \qquad
        x_t = x_{t-1} - \frac{γ\, g_t}{2L/t + β h_t} \\
        θ_t &= (1-α_{t+1}) \left( θ_{t-1} + α_t (x_t - x_{t-1}) \right) + α_{t+1} x_t, \qquad α_t = 2/(t+1)

    State: ``avg_grad`` (the mean of all gradients), ``x_k``, ``v_k``: 12 bytes a float32 parameter. All is elementwise, as the
    paper's diagonal scaling is; ports take one sum a tensor (``whole_tensor=True``). At lr 0 nothing moves. Good for:
    convex problems with noisy gradients.
    """

    def noise_scale(self, noise_sq: Tensor, s: State, c: Scalars) -> Tensor:
        v: Tensor = s.v_k + noise_sq
        s.v_k = v
        return v.sqrt()
