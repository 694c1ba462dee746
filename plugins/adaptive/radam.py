r"""RAdam. Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2020, arXiv:1908.03265."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from zoo import Granularity, Scalars, State, helpers

from .moments import Moments, MomentsConfig, rectification


class RAdamConfig(MomentsConfig):
    """Options of RAdam; names, defaults and meaning are torch's."""

    decoupled_weight_decay: bool = Field(False, description="torch's name for decay_mode='decoupled'.")
    degenerated_to_sgd: bool = Field(
        True, description="Take plain momentum steps while the variance is intractable (the paper's), else none."
    )


class RAdam(Moments[RAdamConfig], rule=Granularity.ELEMENTWISE):
    r"""Adam that warms itself up: the adaptive step is scaled down by how uncertain its second moment still is.

    .. math::
        ρ_∞ &= \frac{2}{1-β_2} - 1, \qquad ρ_t = ρ_∞ - \frac{2 t β_2^t}{1-β_2^t}, \qquad
        r_t = \sqrt{\frac{(ρ_t-4)(ρ_t-2) ρ_∞}{(ρ_∞-4)(ρ_∞-2) ρ_t}} \\
        θ_t &= θ_{t-1} - γ\, \hat m_t \cdot
        \begin{cases} r_t \sqrt{1-β_2^t} / (\sqrt{v_t} + ε) & ρ_t > 5 \\ 1 & \text{else} \end{cases}

    State: ``exp_avg``, ``exp_avg_sq``: 8 bytes a float32 parameter. Checkpoints are interchangeable with
    ``torch.optim.RAdam``. Good for: training without a warm-up.
    """

    def scalars(self, cfg: RAdamConfig, step: Any) -> Scalars:
        return Scalars(step_size=cfg.lr / helpers.debias(cfg.beta1, step), **vars(rectification(cfg, step)))

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        self.average_(g, s, c)
        rate = c.adaptive / helpers.root_plus(s.exp_avg_sq, 1.0, c.eps) + c.plain
        return helpers.scaled(s.exp_avg * rate, c.step_size)

    def decay_mode(self, cfg: RAdamConfig) -> str:
        return "decoupled" if cfg.decoupled_weight_decay else cfg.decay_mode
