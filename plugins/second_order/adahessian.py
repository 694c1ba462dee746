r"""AdaHessian. Yao et al., "ADAHESSIAN: An Adaptive Second Order Optimizer for Machine Learning", 2021, arXiv:2006.00719."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers
from zoo.config import Betas, Epsilon, LearningRate, Unit

from .hessian import HessianConfig, HessianRule


class AdaHessianConfig(HessianConfig):
    """Options of AdaHessian; defaults are the authors'."""

    lr: LearningRate = Field(0.1, description="Learning rate γ.")
    betas: Betas = Field((0.9, 0.999), description="Decay rates β₁, β₂ of the moving averages of g and D².")
    eps: Epsilon = Field(1e-8, description="ε, added to the denominator.")
    hessian_power: Unit = Field(
        1.0, description="Power k of the root of the second moment; 1 is Newton-like, 0 plain momentum."
    )
    average_conv_kernel: bool = Field(
        False, description="Average |D| over each convolution kernel (the paper's spatial averaging)."
    )

    raises = {**HessianConfig.raises, "average_conv_kernel": Granularity.TENSOR}


class AdaHessian(HessianRule[AdaHessianConfig]):
    r"""Adam with the squared diagonal D of the Hessian in the place of the squared gradient.

    .. math::
        D_t \approx z ⊙ H_t z, \quad m_t = β_1 m_{t-1} + (1-β_1) g_t, \quad v_t = β_2 v_{t-1} + (1-β_2) D_t^2, \quad
        θ_t = θ_{t-1} - γ \frac{\hat m_t}{\hat v_t^{k/2} + ε}

    State: ``exp_avg``, ``exp_hessian_diag_sq``, ``hessian``: 12 bytes a float32 parameter. Needs
    ``backward(create_graph=True)``: about twice the time and memory of a plain backward. Good for: small hard problems.
    """

    def init_state(self, p: Tensor, cfg: AdaHessianConfig) -> dict[str, Tensor]:
        return {**super().init_state(p, cfg), "exp_hessian_diag_sq": helpers.zeros_like(p)}

    def scalars(self, cfg: AdaHessianConfig, step: Any) -> Scalars:
        return Scalars(
            step_size=cfg.lr / helpers.debias(cfg.beta1, step),
            debias2=helpers.debias(cfg.beta2, step),
        )

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor | helpers.Scaled:
        diagonal = s.hessian
        if c.average_conv_kernel and p.ndim == 4:
            diagonal = diagonal.abs().mean(dim=(2, 3), keepdim=True).expand(p.shape)
        helpers.ema_(s.exp_avg, g, 1 - c.beta1)
        helpers.ema_sq_(s.exp_hessian_diag_sq, diagonal, c.beta2)
        denom = (s.exp_hessian_diag_sq / c.debias2).sqrt() ** c.hessian_power + c.eps
        return helpers.scaled(s.exp_avg, c.step_size, over=denom)
