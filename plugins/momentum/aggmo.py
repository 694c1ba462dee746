r"""AggMo. Lucas et al., "Aggregated Momentum: Stability Through Passive Damping", 2019, arXiv:1804.00325."""

from __future__ import annotations

from pydantic import Field, field_validator
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, Fraction, LearningRate


class AggMoConfig(OptimizerConfig):
    """Options of AggMo; defaults are the authors'."""

    lr: LearningRate = Field(1e-3, description="Learning rate γ.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient (the authors'); decoupled; independent.")
    betas: tuple[Fraction, ...] = Field(
        (0.0, 0.9, 0.99), min_length=1, description="Damping factors βᵢ, all different: 1 − 0.1ⁱ for i = 0, 1, …"
    )

    @field_validator("betas")
    @classmethod
    def _all_different(cls, betas: tuple[float, ...]) -> tuple[float, ...]:
        if len(set(betas)) < len(betas):
            raise ValueError("betas must all be different: equal ones keep equal velocities; give each once")
        return betas


class AggMo(BaseOptimizer[AggMoConfig], rule=Granularity.ELEMENTWISE):
    r"""The mean of K velocities of different damping: fast ones dampen the oscillations of slow ones.

    .. math::
        v_t^{(i)} = β_i v_{t-1}^{(i)} + g_t, \qquad θ_t = θ_{t-1} - \frac{γ}{K} \sum_{i=1}^{K} v_t^{(i)}

    State: ``momentum_buffer_0`` …, 4·K bytes a float32 parameter. Good for: large momentum without its oscillations.
    """

    counts_steps = False

    def init_state(self, p: Tensor, cfg: AggMoConfig) -> dict[str, Tensor]:
        return {f"momentum_buffer_{i}": helpers.zeros_like(p) for i in range(len(cfg.betas))}

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        velocities = [getattr(s, f"momentum_buffer_{i}").mul_(beta).add_(g) for i, beta in enumerate(c.betas)]
        total = velocities[0]
        for velocity in velocities[1:]:
            total = total + velocity
        return helpers.scaled(total, c.lr / len(velocities))
