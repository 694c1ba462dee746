r"""Adam: adaptive moments. Kingma & Ba, "Adam: A Method for Stochastic Optimization", 2015, arXiv:1412.6980."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import Betas, DecayMode, Epsilon, Fraction, LearningRate, WeightDecay
from zoo.engines.fused import FusedAdam, FusedKernel


class AdamConfig(OptimizerConfig):
    """Options of Adam; defaults are torch's, which are the paper's."""

    lr: LearningRate = Field(1e-3, description="Learning rate γ: a float or a one-element tensor.")
    betas: Betas = Field((0.9, 0.999), description="Decay rates β₁, β₂ of the moving averages of g and g².")
    eps: Epsilon = Field(1e-8, description="ε, added to the denominator.")
    weight_decay: WeightDecay = Field(0.0, description="Weight decay λ.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient (Adam); decoupled: AdamW; independent.")
    decoupled_weight_decay: bool = Field(False, description="torch's name for decay_mode='decoupled'.")
    amsgrad: bool = Field(
        False, description="Divide by the running maximum of the second moment (AMSGrad, arXiv:1904.09237)."
    )
    adanorm: Fraction | None = Field(
        None, description="Decay rate of the gradient norm that g is scaled up to (AdaNorm)."
    )
    adamd: bool = Field(False, description="Correct the bias of the denominator only (AdamD, arXiv:2110.10828).")
    rectify: bool = Field(False, description="Rectify the variance of the adaptive step (RAdam, arXiv:1908.03265).")

    raises = {**OptimizerConfig.raises, "adanorm": Granularity.TENSOR}


class Adam(BaseOptimizer[AdamConfig], rule=Granularity.ELEMENTWISE):
    r"""Adam divides a moving average of the gradient by the root of a moving average of its square.

    .. math::
        m_t &= β_1 m_{t-1} + (1-β_1) g_t, \qquad v_t = β_2 v_{t-1} + (1-β_2) g_t^2 \\
        θ_t &= θ_{t-1} - γ \, \frac{m_t / (1-β_1^t)}{\sqrt{v_t / (1-β_2^t)} + ε}

    State: ``exp_avg``, ``exp_avg_sq`` (and ``max_exp_avg_sq`` with ``amsgrad``): 8 (12) bytes a float32 parameter.
    Checkpoints are interchangeable with ``torch.optim.Adam``. Good for: the default of deep learning.
    """

    fused_kernel: ClassVar[FusedKernel | None] = FusedAdam(without=("adanorm", "adamd", "rectify"))

    def init_state(self, p: Tensor, cfg: AdamConfig) -> dict[str, Tensor]:
        names = ["exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if cfg.amsgrad else [])]
        state = {name: helpers.zeros_like(p) for name in names}
        if cfg.adanorm is not None:
            state["exp_grad_norm"] = helpers.zero_scalar(p)
        return state

    def scalars(self, cfg: AdamConfig, step: Any) -> Scalars:
        debias1, debias2 = helpers.adam_debias(cfg.beta1, cfg.beta2, step, adamd=cfg.adamd)
        r = helpers.rectify(cfg.beta2, step) if cfg.rectify else helpers.Rectification(1.0, 0.0)
        return Scalars(
            step_size=cfg.lr / debias1, denom_scale=helpers.sqrt(debias2), adaptive=r.adaptive, plain=r.plain
        )

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor | helpers.Scaled:
        normed = g if c.adanorm is None else helpers.adanorm_(g, s.exp_grad_norm, c.adanorm)
        helpers.ema_(s.exp_avg, normed, 1 - c.beta1)
        helpers.ema_sq_(s.exp_avg_sq, g, c.beta2)
        second = helpers.ams_bound_(s.max_exp_avg_sq, s.exp_avg_sq) if c.amsgrad else s.exp_avg_sq
        denom = helpers.root_plus(second, c.denom_scale, c.eps)
        direction = self.direction(normed, s, c)
        if c.rectify:
            return c.step_size * direction * (c.adaptive / denom + c.plain)
        return helpers.scaled(direction, c.step_size, over=denom)

    def direction(self, g: Tensor, s: State, c: Scalars) -> Tensor:
        """What is divided by the root: the first moment; variants look ahead from it."""
        return s.exp_avg

    def decay_mode(self, cfg: AdamConfig) -> str:
        return "decoupled" if cfg.decoupled_weight_decay else cfg.decay_mode
