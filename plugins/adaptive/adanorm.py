r"""AdaNorm. Dubey, Singh & Chaudhuri, "AdaNorm: Adaptive Gradient Norm Correction based Optimizer for CNNs", 2023, arXiv:2210.06364."""

from __future__ import annotations

from pydantic import Field

from zoo import Granularity
from zoo.config import Fraction

from .adam import Adam, AdamConfig


class AdaNormConfig(AdamConfig):
    """Options of AdaNorm: those of Adam, with the authors' defaults."""

    adanorm: Fraction = Field(0.95, description="Decay rate of the gradient norm that g is scaled up to.")


class AdaNorm(Adam, rule=Granularity.TENSOR):
    r"""Adam whose first moment takes in gradients of no less than their usual norm.

    .. math::
        e_t = ρ e_{t-1} + (1-ρ) \|g_t\|, \qquad s_t = g_t \max(1, e_t / \|g_t\|), \qquad
        m_t = β_1 m_{t-1} + (1-β_1) s_t

    and the rest as Adam, v of the plain gradient; norms are of whole tensors. State: as Adam, 8 bytes a float32
    parameter, and one number, ``exp_grad_norm``. The authors' code also adds ε to v itself, at every step.
    Good for: convolutional networks.
    """

    Config = AdaNormConfig
    fused_kernel = None
