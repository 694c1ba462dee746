r"""Adan. Xie et al., "Adan: Adaptive Nesterov Momentum Algorithm for Faster Optimizing Deep Models", 2022, arXiv:2208.06677."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import Betas3, Epsilon, LearningRate

from .moments import own_decay, with_decay


class AdanConfig(OptimizerConfig):
    """Options of Adan; defaults are the authors'."""

    lr: LearningRate = Field(1e-3, description="Learning rate γ: 5 to 10 times Adam's works.")
    betas: Betas3 = Field(
        (0.98, 0.92, 0.99),
        description="Decay rates of the averages of g, of its difference and of the square; 1 − the paper's.",
    )
    eps: Epsilon = Field(1e-8, description="ε, added to the denominator.")
    no_prox: bool = Field(False, description="Decay as AdamW does instead of by the proximal step 1/(1 + γλ).")
    restart_interval: int | None = Field(
        None, ge=1, description="Forget all averages every so many steps; None: never."
    )


class Adan(BaseOptimizer[AdanConfig], rule=Granularity.ELEMENTWISE):
    r"""Nesterov momentum without a second gradient: an average of gradient differences stands for the look-ahead.

    .. math::
        m_t &= β_1 m_{t-1} + (1-β_1) g_t, \qquad d_t = β_2 d_{t-1} + (1-β_2)(g_t - g_{t-1}) \\
        n_t &= β_3 n_{t-1} + (1-β_3)(g_t + β_2 (g_t - g_{t-1}))^2 \\
        θ_t &= \frac{1}{1 + γλ} \left( θ_{t-1} - γ\, \frac{\hat m_t + β_2 \hat d_t}{\sqrt{\hat n_t} + ε} \right)

    with g₀ = g₁ and hats for averages divided by 1 − βᵗ. State: ``exp_avg``, ``exp_avg_diff``, ``exp_avg_sq``,
    ``previous_grad``: 16 bytes a float32 parameter. The paper restarts when the weights have moved far;
    here the step count, which checkpoints hold, decides. Good for: vision transformers, large batches.
    """

    def init_state(self, p: Tensor, cfg: AdanConfig) -> dict[str, Tensor]:
        names = ("exp_avg", "exp_avg_diff", "exp_avg_sq", "previous_grad")
        return {name: helpers.zeros_like(p) for name in names}

    def scalars(self, cfg: AdanConfig, step: Any) -> Scalars:
        since = step if cfg.restart_interval is None else (step - 1) % cfg.restart_interval + 1
        debias1, debias2, debias3 = (helpers.debias(beta, since) for beta in cfg.betas)
        return Scalars(
            step_size=cfg.lr / debias1, diff_size=cfg.lr * cfg.betas[1] / debias2, denom_scale=helpers.sqrt(debias3),
            kept=helpers.where(since == 1, 0.0, 1.0), **vars(own_decay(cfg, self.decay_mode(cfg))),
        )  # fmt: skip

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor | helpers.Scaled:
        if c.restart_interval is not None:
            for average in (s.exp_avg, s.exp_avg_diff, s.exp_avg_sq):
                average.mul_(c.kept)
        difference = (g - s.previous_grad).mul_(c.kept)
        s.previous_grad.copy_(g)
        helpers.ema_(s.exp_avg, g, 1 - c.beta1)
        helpers.ema_(s.exp_avg_diff, difference, 1 - c.beta2)
        helpers.ema_sq_(s.exp_avg_sq, helpers.add_scaled(g, difference, c.beta2), c.beta3)
        ahead = helpers.add_(s.exp_avg * helpers.as_like(c.step_size, g), s.exp_avg_diff, c.diff_size)
        root = helpers.root_plus(s.exp_avg_sq, c.denom_scale, c.eps)
        if not c.decays:
            return helpers.scaled(ahead, 1.0, over=root)
        return with_decay(ahead / root, p, c.decay, c) / (1 + c.decay)

    def decay_mode(self, cfg: AdanConfig) -> str:
        return cfg.decay_mode if cfg.no_prox or cfg.decay_mode == "l2" else "rule"
