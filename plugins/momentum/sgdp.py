r"""SGDP. Heo et al., "Slowing Down the Weight Norm Increase in Momentum-based Optimizers", 2021, arXiv:2006.08217."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers
from zoo.config import DecayMode, Epsilon, Fraction, NonNegative

from .sgd import SGD, SGDConfig


class SGDPConfig(SGDConfig):
    """Options of SGDP: those of SGD, and the projection's, with the authors' defaults."""

    decay_mode: DecayMode = Field(
        "decoupled", description="decoupled: scaled by γ/(1 − μ) (the authors'); independent; l2."
    )
    momentum: Fraction = Field(0.0, description="Momentum factor μ.")
    eps: Epsilon = Field(1e-8, description="ε, keeps norms of zero from dividing.")
    delta: NonNegative = Field(0.1, description="δ: a weight counts as scale-invariant where |cos(θ, g)| < δ/√n.")
    wd_ratio: NonNegative = Field(0.1, description="Factor of the weight decay where the update was projected.")


class SGDP(SGD, rule=Granularity.TENSOR):
    r"""SGD whose update loses its radial part on weights that a normalization makes scale-invariant.

    .. math::
        u_t = \begin{cases} Π_θ(b_t) & |\cos(θ, g_t)| < δ/\sqrt n \\ b_t & \text{else} \end{cases} \qquad
        θ_t = θ_{t-1} - γ u_t - \tfrac{γλ}{1-μ}\, r\, θ_{t-1}

    with Π projecting onto the tangent space at θ, channel by channel or for the whole layer, and r the ``wd_ratio`` there,
    else 1. State: as SGD. The first gradient enters the momentum undampened, as in SGD; the authors' code dampens it,
    and without Nesterov's momentum it projects the buffer itself. Good for: networks with batch normalization.
    """

    Config = SGDPConfig
    supports_sparse = False
    fused_kernel = None

    def scalars(self, cfg: Any, step: Any) -> Scalars:
        scalars = super().scalars(cfg, step)
        scalars.decays = cfg.weight_decay != 0 and cfg.decay_mode != "l2"
        scalars.cautiously = cfg.cautious_weight_decay
        return scalars

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        plain = super().update(g, p, s, c)
        update, ratio = helpers.project_scale_invariant(plain.numerator, p, g, c.delta, c.wd_ratio, c.eps)
        if c.decays:
            fraction = ratio * (c.decay / (1 - c.momentum))
            update = update * helpers.as_like(c.lr, update)
            decay = helpers.cautious_decay(p, update, fraction) if c.cautiously else p * fraction
            return helpers.scaled(update + decay, 1.0)
        return helpers.scaled(update, c.lr)

    def decay_mode(self, cfg: Any) -> str:
        return "l2" if cfg.decay_mode == "l2" else "rule"
