r"""SGD-SaI. Xu et al., "No More Adam: Learning Rate Scaling at Initialization is All You Need", 2024, arXiv:2412.11768."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import Epsilon, Fraction, LearningRate, WeightDecay


class SGDSaIConfig(OptimizerConfig):
    """Options of SGD-SaI; defaults are the authors'."""

    lr: LearningRate = Field(1e-2, description="Learning rate γ.")
    weight_decay: WeightDecay = Field(1e-2, description="Weight decay λ, decoupled.")
    momentum: Fraction = Field(0.9, description="μ, decay rate of the moving average of g.")
    eps: Epsilon = Field(1e-8, description="ε, added to the standard deviation.")


class SGDSaI(BaseOptimizer[SGDSaIConfig], rule=Granularity.TENSOR):
    r"""SGD with momentum whose learning rate is set once for each tensor: by the signal-to-noise of its first gradient.

    .. math::
        G = \frac{\|g_1\|}{\operatorname{std}(g_1) + ε}, \qquad
        m_t = μ m_{t-1} + (1-μ) g_t \quad (m_1 = g_1), \qquad θ_t = (1 - γλ)\, θ_{t-1} - γ G m_t

    State: ``momentum_buffer``, 4 bytes a float32 parameter, and one number, ``gsnr`` (G). As in version 1.0.3 of the authors'
    code; later ones divide by the largest G of the model. A gradient of zeros is not taken for the first one, and
    a gradient without spread (one element, or all equal) has G = ‖g‖. Good for: transformers on half of AdamW's memory.
    """

    counts_steps = False

    def init_state(self, p: Tensor, cfg: SGDSaIConfig) -> dict[str, Tensor]:
        buffer = {"momentum_buffer": helpers.zeros_like(p)} if cfg.momentum != 0 else {}
        return {**buffer, "gsnr": helpers.zero_scalar(p)}

    def scalars(self, cfg: SGDSaIConfig, step: Any) -> Scalars:
        return Scalars(heavy=cfg.momentum != 0)

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        begun = s.gsnr > 0
        found = signal_to_noise(g, c.eps)
        s.gsnr = torch.where(begun | ~torch.isfinite(found), s.gsnr, found.to(s.gsnr.dtype))
        if c.heavy:
            g = helpers.ema_(s.momentum_buffer, g, 1 - c.momentum * begun.to(g.dtype))
        return helpers.scaled(g * helpers.as_like(s.gsnr, g), c.lr)


@helpers.per_tensor
def signal_to_noise(g: Tensor, eps: helpers.Scalar) -> Tensor:
    """‖g‖/(std(g) + ε), or ‖g‖ where the elements do not differ by more than rounding."""
    norm: Tensor = torch.linalg.vector_norm(g)
    if g.numel() < 2:
        return norm
    spread = g.std()
    distinct = spread > norm * (8 * torch.finfo(g.dtype).eps / g.numel() ** 0.5)
    return torch.where(distinct, norm / (spread + helpers.as_like(eps, spread)), norm)
