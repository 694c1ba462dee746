r"""NAdam. Dozat, "Incorporating Nesterov Momentum into Adam", 2016, ICLR workshop."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers
from zoo.config import LearningRate, NonNegative

from .moments import Moments, MomentsConfig


class NAdamConfig(MomentsConfig):
    """Options of NAdam; names, defaults and meaning are torch's."""

    lr: LearningRate = Field(2e-3, description="Learning rate γ: a float or a one-element tensor.")
    momentum_decay: NonNegative = Field(4e-3, description="ψ: how fast the momentum schedule rises to β₁.")
    decoupled_weight_decay: bool = Field(False, description="torch's name for decay_mode='decoupled'.")


class NAdam(Moments[NAdamConfig], rule=Granularity.TENSOR):
    r"""Adam with Nesterov's momentum: the step looks ahead along the momentum of the next step.

    .. math::
        μ_t &= β_1 (1 - \tfrac12 0.96^{tψ}), \qquad
        \hat m_t = \frac{μ_{t+1}\, m_t}{1 - \prod_{i \le t+1} μ_i} + \frac{(1-μ_t)\, g_t}{1 - \prod_{i \le t} μ_i} \\
        θ_t &= θ_{t-1} - γ\, \hat m_t / (\sqrt{v_t / (1-β_2^t)} + ε)

    State: ``exp_avg``, ``exp_avg_sq``: 8 bytes a float32 parameter, and one number, ``mu_product``. Checkpoints are
    interchangeable with ``torch.optim.NAdam``. For the variant without a schedule, see ``nadamw``.
    Good for: Adam's tasks, a little faster at the start.
    """

    supports_complex = True

    def init_state(self, p: Tensor, cfg: NAdamConfig) -> dict[str, Tensor]:
        return {"mu_product": torch.ones((), dtype=torch.float32, device=p.device), **super().init_state(p, cfg)}

    def scalars(self, cfg: NAdamConfig, step: Any) -> Scalars:
        mu, mu_next = (cfg.beta1 * (1.0 - 0.5 * 0.96 ** (t * cfg.momentum_decay)) for t in (step, step + 1))
        return Scalars(mu=mu, mu_next=mu_next, denom_scale=helpers.sqrt(helpers.debias(cfg.beta2, step)))

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        self.average_(g, s, c)
        # Rounded to float32 at every step, as torch keeps it.
        product = s.mu_product.to(torch.float32)
        s.mu_product = product * helpers.as_like(c.mu, product)
        product = helpers.as_like(s.mu_product, g)
        now = g * helpers.as_like((1 - c.mu) / (1 - product), g)
        ahead = s.exp_avg * helpers.as_like(c.mu_next / (1 - product * c.mu_next), g)
        return helpers.scaled(now.add_(ahead), c.lr, over=helpers.root_plus(s.exp_avg_sq, c.denom_scale, c.eps))

    def decay_mode(self, cfg: NAdamConfig) -> str:
        return "decoupled" if cfg.decoupled_weight_decay else cfg.decay_mode
