r"""AdamW: Adam with decoupled weight decay. Loshchilov & Hutter, 2019, arXiv:1711.05101."""

from __future__ import annotations

from pydantic import Field

from zoo import Granularity
from zoo.config import DecayMode, WeightDecay

from .adam import Adam, AdamConfig


class AdamWConfig(AdamConfig):
    """Options of AdamW; defaults are torch's."""

    weight_decay: WeightDecay = Field(1e-2, description="Weight decay λ, decoupled from the gradient.")
    decay_mode: DecayMode = Field("decoupled", description="decoupled: θ ← θ(1 − γλ); independent; l2 would be Adam.")
    decoupled_weight_decay: bool = Field(True, description="torch's name for decay_mode='decoupled'.")


class AdamW(Adam, rule=Granularity.ELEMENTWISE):
    r"""AdamW shrinks the weights directly instead of adding λθ to the gradient that Adam then rescales.

    .. math:: θ_t = θ_{t-1} - γ λ θ_{t-1} - γ \, \frac{\hat m_t}{\sqrt{\hat v_t} + ε}

    State: as Adam, 8 bytes a float32 parameter. Checkpoints are interchangeable with ``torch.optim.AdamW``.
    Good for: transformers, and nearly everything that Adam is used for.
    """

    Config = AdamWConfig
