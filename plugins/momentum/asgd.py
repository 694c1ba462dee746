r"""ASGD. Polyak & Juditsky, "Acceleration of stochastic approximation by averaging", 1992, doi:10.1137/0330046."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, LearningRate, NonNegative, Real


class ASGDConfig(OptimizerConfig):
    """Options of ASGD; names, defaults and meaning are torch's."""

    lr: LearningRate = Field(1e-2, description="Learning rate γ at the first step.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient (torch's); decoupled; independent.")
    lambd: NonNegative = Field(1e-4, description="Decay term λ′ of the weights, which also slows γ down.")
    alpha: Real = Field(0.75, description="Power α by which γ falls.")
    t0: Real = Field(1e6, description="Step t₀ after which the average starts.")


class ASGD(BaseOptimizer[ASGDConfig], rule=Granularity.TENSOR):
    r"""SGD with a falling step size, and beside it the average of its iterates from step t₀ on.

    .. math::
        η_t &= γ\, (1 + λ' γ (t-1))^{-α}, \qquad μ_t = 1 / \max(1, t - 1 - t_0) \\
        θ_t &= (1 - λ' η_t)\, θ_{t-1} - η_t g_t, \qquad \bar θ_t = \bar θ_{t-1} + μ_t (θ_t - \bar θ_{t-1})

    State: ``ax`` (the average), 4 bytes a float32 parameter, and ``eta`` and ``mu`` as torch keeps them: those of the
    next step. Checkpoints are interchangeable with ``torch.optim.ASGD``. A learning rate that a scheduler writes
    acts at the next step, where torch's acts one step later. The average is of what the rule itself does:
    decoupled decay is left out. Good for: convex problems, language models with a late average.
    """

    supports_complex = True

    def init_state(self, p: Tensor, cfg: ASGDConfig) -> dict[str, Tensor]:
        eta = torch.zeros((), dtype=torch.float32, device=p.device)
        eta.fill_(cfg.lr if not isinstance(cfg.lr, Tensor) else cfg.lr.detach().reshape(()))
        return {"eta": eta, "mu": torch.ones((), dtype=torch.float32, device=p.device), "ax": helpers.zeros_like(p)}

    def scalars(self, cfg: ASGDConfig, step: Any) -> Scalars:
        eta, next_eta = (cfg.lr / (1 + cfg.lambd * cfg.lr * done) ** cfg.alpha for done in (step - 1, step))
        mu, next_mu = (1.0 / helpers.maximum(done - cfg.t0, 1.0) for done in (step - 1, step))
        return Scalars(eta=eta, next_eta=next_eta, mu=mu, next_mu=next_mu)

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        # Rounded to float32, as torch keeps them between two steps.
        eta, mu = (torch.zeros_like(s.eta, dtype=torch.float32).add_(number) for number in (c.eta, c.mu))
        update = helpers.add_scaled(g, p, c.lambd) * eta
        helpers.ema_(s.ax, p - update, mu)
        s.eta.fill_(c.next_eta)
        s.mu.fill_(c.next_mu)
        return update
