"""Steps along the cube root of the gradient: made up, to have something that no other package has."""

from pydantic import Field

from zoo import BaseOptimizer, Granularity, OptimizerConfig, helpers
from zoo.config import Fraction


class TinyStepConfig(OptimizerConfig):
    """Options of TinyStep."""

    momentum: Fraction = Field(0.0, description="Decay rate of the gradient's moving average.")


class TinyStep(BaseOptimizer[TinyStepConfig], rule=Granularity.ELEMENTWISE):
    """θ ← θ − γ·sign(m)·|m|^(1/3)."""

    counts_steps = False

    def init_state(self, p, cfg):
        return {"exp_avg": helpers.zeros_like(p)}

    def update(self, g, p, s, c):
        helpers.ema_(s.exp_avg, g, 1 - c.momentum)
        return helpers.scaled(s.exp_avg.sign() * s.exp_avg.abs() ** (1 / 3), c.lr)
