r"""SGDW: SGD with decoupled weight decay. Loshchilov & Hutter, 2019, arXiv:1711.05101."""

from __future__ import annotations

from pydantic import Field

from zoo import Granularity
from zoo.config import DecayMode

from .sgd import SGD, SGDConfig


class SGDWConfig(SGDConfig):
    """Options of SGDW: those of SGD."""

    decay_mode: DecayMode = Field("decoupled", description="decoupled: θ ← θ(1 − γλ); independent; l2 would be SGD.")


class SGDW(SGD, rule=Granularity.ELEMENTWISE):
    r"""SGD that shrinks the weights directly, so that the decay does not pass through the momentum.

    .. math:: θ_t = (1 - γλ)\, θ_{t-1} - γ\, b_t, \qquad b_t = μ b_{t-1} + (1-τ) g_t

    State: as SGD. With momentum μ the same λ decays 1/(1 − μ) times less than SGD's. Good for: vision models whose
    decay and learning rate are tuned apart.
    """

    Config = SGDWConfig
