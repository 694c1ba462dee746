r"""RMSprop as TensorFlow has it. Tieleman & Hinton, Neural Networks for Machine Learning, lecture 6.5, 2012."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, helpers
from zoo.config import Epsilon, Unit

from .moments import filled
from .rmsprop import RMSprop, RMSpropConfig


class RMSpropTFConfig(RMSpropConfig):
    """Options of RMSprop with TensorFlow's defaults."""

    alpha: Unit = Field(0.9, description="Decay rate α of the moving average of g².")
    eps: Epsilon = Field(1e-10, description="ε, added under the root; 1e-3 in the recipes of EfficientNet.")
    lr_in_momentum: bool = Field(
        True, description="The momentum holds γ times the divided gradients, so a new γ acts on new gradients only."
    )


class RMSpropTF(RMSprop, rule=Granularity.ELEMENTWISE):
    r"""RMSprop with ε under the root, an average of squares that starts at one, and γ inside the momentum.

    .. math::
        v_t = α v_{t-1} + (1-α) g_t^2 \quad (v_0 = 1), \qquad b_t = μ b_{t-1} + γ\, g_t / \sqrt{v_t + ε}, \qquad
        θ_t = θ_{t-1} - b_t

    State: as RMSprop. At γ = 0 nothing moves, where TensorFlow lets the momentum run out.
    Good for: recipes that were tuned in TensorFlow, such as MobileNet's and EfficientNet's.
    """

    Config = RMSpropTFConfig

    def init_state(self, p: Tensor, cfg: Any) -> dict[str, Tensor]:
        return {**super().init_state(p, cfg), "square_avg": filled(p, 1.0)}

    def scalars(self, cfg: Any, step: Any) -> Scalars:
        scalars = super().scalars(cfg, step)
        if cfg.lr_in_momentum:
            scalars.share, scalars.rate = cfg.lr, helpers.where(cfg.lr > 0, 1.0, 0.0)
        return scalars

    def root(self, variance: Tensor, c: Scalars) -> Tensor:
        return (variance + helpers.as_like(c.eps, variance)).sqrt()
