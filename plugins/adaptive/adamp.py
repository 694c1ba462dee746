r"""AdamP. Heo et al., "Slowing Down the Slowdown for Momentum Optimizers on Scale-invariant Weights", 2021, arXiv:2006.08217."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers
from zoo.config import DecayMode, NonNegative

from .adam import Adam, AdamConfig
from .moments import own_decay, with_decay


class AdamPConfig(AdamConfig):
    """Options of AdamP: those of Adam, and the projection's, with the authors' defaults."""

    decay_mode: DecayMode = Field("decoupled", description="decoupled: θ ← θ(1 − γλ) (the authors'); independent; l2.")
    delta: NonNegative = Field(0.1, description="δ: a weight counts as scale-invariant where |cos(θ, g)| < δ/√n.")
    wd_ratio: NonNegative = Field(0.1, description="Factor of the weight decay where the update was projected.")
    nesterov: bool = Field(False, description="Look ahead along the momentum.")


class AdamP(Adam, rule=Granularity.TENSOR):
    r"""AdamW whose update loses its radial part on weights that a normalization makes scale-invariant.

    .. math::
        u_t = \hat m_t / (\sqrt{\hat v_t} + ε), \qquad θ_t = θ_{t-1} - γ
        \begin{cases} Π_θ(u_t) + rλ\, θ_{t-1} & |\cos(θ, g_t)| < δ/\sqrt n \\ u_t + λ\, θ_{t-1} & \text{else} \end{cases}

    with Π projecting onto the tangent space at θ, channel by channel or for the whole layer, and r the ``wd_ratio``.
    State: as Adam, 8 bytes a float32 parameter. Good for: networks with batch normalization.
    """

    Config = AdamPConfig
    fused_kernel = None

    def scalars(self, cfg: Any, step: Any) -> Scalars:
        return Scalars(**vars(super().scalars(cfg, step)), **vars(own_decay(cfg, self.decay_mode(cfg))))

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        plain = super().update(g, p, s, c)
        whole = plain.tensor() if isinstance(plain, helpers.Scaled) else plain
        update, ratio = helpers.project_scale_invariant(whole, p, g, c.delta, c.wd_ratio, c.eps)
        return with_decay(update, p, ratio * helpers.as_like(c.decay, ratio), c) if c.decays else update

    def direction(self, g: Tensor, s: State, c: Scalars) -> Tensor:
        return helpers.nesterov_ema(s.exp_avg, g, c.beta1) if c.nesterov else s.exp_avg

    def decay_mode(self, cfg: Any) -> str:
        return "l2" if super().decay_mode(cfg) == "l2" else "rule"
