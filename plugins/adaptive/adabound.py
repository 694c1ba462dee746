r"""AdaBound. Luo et al., "Adaptive Gradient Methods with Dynamic Bound of Learning Rate", 2019, arXiv:1902.09843."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers
from zoo.config import NonNegative, Positive

from .moments import Moments, MomentsConfig


class AdaBoundConfig(MomentsConfig):
    """Options of AdaBound; defaults are the authors'."""

    final_lr: NonNegative = Field(0.1, description="Learning rate of the SGD that it ends as.")
    gamma: Positive = Field(1e-3, description="How fast the bounds close in.")
    amsbound: bool = Field(False, description="Divide by the running maximum of the second moment (AMSBound).")


class AdaBound(Moments[AdaBoundConfig], rule=Granularity.ELEMENTWISE):
    r"""Adam whose rate for each weight is clipped between two bounds that close in on that of SGD.

    .. math::
        η_t = \operatorname{clip}\!\left( γ \frac{\sqrt{1-β_2^t}}{1-β_1^t} \frac{1}{\sqrt{v_t} + ε},\;
        η^*\! \left(1 - \tfrac{1}{γ' t + 1}\right),\; η^*\! \left(1 + \tfrac{1}{γ' t}\right) \right), \qquad
        θ_t = θ_{t-1} - η_t m_t

    with η* the ``final_lr``, scaled as a schedule scales γ, and γ' ``gamma``. State: ``exp_avg``, ``exp_avg_sq`` (and
    ``max_exp_avg_sq`` with ``amsbound``): 8 (12) bytes a float32 parameter; ``base_lr``, the learning rate given at
    construction, in the group. Good for: Adam's start with SGD's generalization.
    """

    def init_group(self, cfg: AdaBoundConfig) -> dict[str, Any]:
        lr = cfg.lr.detach() if isinstance(cfg.lr, Tensor) else cfg.lr
        return {"base_lr": lr.clone() if isinstance(lr, Tensor) and lr.device.type != "cpu" else float(lr)}

    def init_state(self, p: Tensor, cfg: AdaBoundConfig) -> dict[str, Tensor]:
        bound = {"max_exp_avg_sq": helpers.zeros_like(p)} if cfg.amsbound else {}
        return {**super().init_state(p, cfg), **bound}

    def scalars(self, cfg: AdaBoundConfig, step: Any) -> Scalars:
        scalars = super().scalars(cfg, step)
        scalars.floor, scalars.ceiling = 1 - 1 / (cfg.gamma * step + 1), 1 + 1 / (cfg.gamma * step)
        scalars.active = helpers.where(cfg.lr > 0, 1.0, 0.0)
        return scalars

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        self.average_(g, s, c)
        second = helpers.ams_bound_(s.max_exp_avg_sq, s.exp_avg_sq) if c.amsbound else s.exp_avg_sq
        known = c.base_lr > 0
        schedule = helpers.where(known, c.lr / helpers.where(known, c.base_lr, 1.0), c.active)
        rate = (c.step_size * c.denom_scale) / helpers.root_plus(second, 1.0, c.eps)
        final = c.final_lr * schedule
        rate = helpers.minimum(helpers.maximum(rate, final * c.floor), final * c.ceiling)
        return rate * s.exp_avg
