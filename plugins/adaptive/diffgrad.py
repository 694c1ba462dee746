r"""diffGrad. Dubey et al., "diffGrad: An Optimization Method for Convolutional Neural Networks", 2020, arXiv:1909.11015."""

from __future__ import annotations

from torch import Tensor

from zoo import Granularity, Scalars, State, helpers

from .moments import Moments, MomentsConfig


class DiffGradConfig(MomentsConfig):
    """Options of diffGrad; defaults are the authors'."""


class DiffGrad(Moments[DiffGradConfig], rule=Granularity.ELEMENTWISE):
    r"""Adam with friction: where the gradient hardly changes, down to half the step is taken.

    .. math::
        ξ_t = \frac{1}{1 + e^{-|g_{t-1} - g_t|}}, \qquad
        θ_t = θ_{t-1} - γ\, \frac{\sqrt{1-β_2^t}}{1-β_1^t} \frac{ξ_t m_t}{\sqrt{v_t} + ε}

    State: ``exp_avg``, ``exp_avg_sq``, ``previous_grad``: 12 bytes a float32 parameter. Good for: convolutional
    networks that overshoot their minima.
    """

    def init_state(self, p: Tensor, cfg: DiffGradConfig) -> dict[str, Tensor]:
        return {**super().init_state(p, cfg), "previous_grad": helpers.zeros_like(p)}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        self.average_(g, s, c)
        friction = (s.previous_grad - g).abs_().sigmoid_()
        s.previous_grad.copy_(g)
        root = helpers.root_plus(s.exp_avg_sq, 1.0, c.eps)
        return helpers.scaled(friction * s.exp_avg, c.step_size * c.denom_scale, over=root)
