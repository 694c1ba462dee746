r"""D-Adapt Lion. Defazio & Mishchenko, "Learning-Rate-Free Learning by D-Adaptation", 2023, arXiv:2301.07733."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import Scalars, State, helpers
from zoo.config import Betas, DecayMode

from .dadapt_adam import DAdaptAdam
from .estimate import EstimateConfig


class DAdaptLionConfig(EstimateConfig):
    """Options of D-Adapt Lion; defaults are the authors'."""

    betas: Betas = Field((0.9, 0.99), description="β₁ of the interpolation, β₂ of the momentum and the estimate.")
    decay_mode: DecayMode = Field("decoupled", description="decoupled: scaled by d and lr; l2: λθ joins the gradient.")


class DAdaptLion(DAdaptAdam):
    r"""Lion whose step size is the D-adaptation estimate d, with the sign updates u in the place of gradients.

    .. math::
        u_t &= \operatorname{sign}(β_1 m_t + (1-β_1) g_t), \quad m_{t+1} = β_2 m_t + (1-β_2) d_t γ g_t, \quad
        θ_{t+1} = θ_t - d_t γ (u_t + λ θ_t) \\
        s_{t+1} &= \sqrt{β_2} s_t + (1-\sqrt{β_2}) d_t γ u_t, \quad \hat d_{t+1} \text{ as in D-Adapt Adam with } ⟨u_t, s_t⟩

    State: ``exp_avg``, ``s``: 8 bytes a float32 parameter. As in the authors' code, u mixes the raw gradient with a
    momentum that carries d. Good for: Lion without tuning lr.
    """

    Config = DAdaptLionConfig

    def init_state(self, p: Tensor, cfg: Any) -> dict[str, Tensor]:
        return {name: helpers.zeros_like(p) for name in ("exp_avg", "s")}

    def bias(self, cfg: Any, step: Any) -> Any:
        return 1.0

    def reduce(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Mapping[str, Tensor]:
        root, dlr = helpers.sqrt(c.beta2), c.d * c.lr
        direction = helpers.nesterov_ema(s.exp_avg, g, c.beta1).sign()
        numerator = dlr * (direction * s.s).sum()
        helpers.add_(s.s.mul_(root), direction, dlr * (1 - root))
        return {"numerator": numerator, "denominator": s.s.abs().sum() * c.active}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        direction = helpers.nesterov_ema(s.exp_avg, g, c.beta1).sign()
        helpers.add_(s.exp_avg.mul_(c.beta2), g, c.dlr * (1 - c.beta2))
        return c.dlr * direction
