r"""AdaTAM. Malviya et al., "Torque-Aware Momentum", 2024, arXiv:2412.18790."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers
from zoo.config import DecayMode, Fraction

from ..momentum.tam import unit
from .moments import Moments, MomentsConfig


class AdaTAMConfig(MomentsConfig):
    """Options of AdaTAM; defaults are the paper's."""

    decay_mode: DecayMode = Field("decoupled", description="decoupled: AdaTAMW; independent; l2.")
    decay_rate: Fraction = Field(0.9, description="Decay rate ρ of the moving average of the cosine.")


class AdaTAM(Moments[AdaTAMConfig], rule=Granularity.TENSOR):
    r"""Adam whose momentum takes in less of a gradient the more it turns away from the momentum.

    .. math::
        s_t &= ρ s_{t-1} + (1-ρ) \cos(m_{t-1}, g_t), \qquad m_t = β_1 m_{t-1} + (ε + (1 + s_t)/2)\, g_t \\
        θ_t &= θ_{t-1} - γ\, m_t / (\sqrt{v_t} + ε), \qquad v_t = β_2 v_{t-1} + (1-β_2) g_t^2

    The cosine is of whole tensors. Gradients enter m undamped by 1 − β₁ and nothing is corrected for its start at 0: use a
    learning rate some 10 times smaller than Adam's. State: ``exp_avg``, ``exp_avg_sq``: 8 bytes a float32 parameter, and
    one number, ``s``. A known port multiplies normalized columns instead, without summing.
    Good for: large, misaligned gradients and shifting data.
    """

    def init_state(self, p: Tensor, cfg: AdaTAMConfig) -> dict[str, Tensor]:
        return {**super().init_state(p, cfg), "s": helpers.zero_scalar(p)}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        helpers.ema_(s.s, (unit(s.exp_avg) * unit(g)).sum(), 1 - c.decay_rate)
        share = helpers.as_like((1 + s.s) / 2 + c.eps, g)
        s.exp_avg = helpers.add_scaled(s.exp_avg * helpers.as_like(c.beta1, g), g, share)
        helpers.ema_sq_(s.exp_avg_sq, g, c.beta2)
        return helpers.scaled(s.exp_avg, c.lr, over=helpers.root_plus(s.exp_avg_sq, 1.0, c.eps))
