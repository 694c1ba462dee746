"""What the three A2Grad rules share: Nesterov's coupled sequences, and a step that adapts to the gradient's noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import DecayMode, LearningRate, NonNegative, Positive


class A2GradConfig(OptimizerConfig):
    """Options of every A2Grad rule."""

    lr: LearningRate = Field(1.0, description="Factor of the step that L and β give; 1 is the paper's.")
    decay_mode: DecayMode = Field("l2", description="l2: λθ joins the gradient; decoupled; independent.")
    beta: NonNegative = Field(10.0, description="β, weight of the gradient's noise in the denominator.")
    lips: Positive = Field(10.0, description="L, Lipschitz constant of the gradient: larger steps more carefully.")
    whole_tensor: bool = Field(
        False, description="One noise estimate a tensor, as other code has it, not one an element."
    )

    raises: ClassVar[Mapping[str, Granularity]] = {**OptimizerConfig.raises, "whole_tensor": Granularity.TENSOR}


C = TypeVar("C", bound=A2GradConfig)


class A2Grad(BaseOptimizer[C], rule=Granularity.ELEMENTWISE):
    r"""Base of A2Grad rules: a variant says how noise estimates :math:`δ_t^2` become the scale :math:`h_t`."""

    noise_states: ClassVar[tuple[str, ...]] = ("v_k",)
    """Names of the running noise estimates."""

    def init_state(self, p: Tensor, cfg: C) -> dict[str, Tensor]:
        noise = helpers.zero_scalar if cfg.whole_tensor else helpers.zeros_like
        return {"avg_grad": helpers.zeros_like(p), "x_k": p.clone(), **{name: noise(p) for name in self.noise_states}}

    def scalars(self, cfg: C, step: Any) -> Scalars:
        return Scalars(
            t=step * 1.0,
            gamma=2 * cfg.lips / step,
            alpha=2 / (step + 1),
            pull=2 / (step + 2),
            active=helpers.where(cfg.lr > 0, 1.0, 0.0),
        )

    def noise_scale(self, noise_sq: Tensor, s: State, c: Scalars) -> Tensor:
        """h from δ², after the running estimates have taken it in."""
        raise NotImplementedError(f"{type(self).__name__} defines no noise_scale")

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> helpers.Scaled:
        helpers.ema_(s.avg_grad, g, 1 / c.t)
        noise_sq = (g - s.avg_grad).square()
        if c.whole_tensor:
            noise_sq = noise_sq.sum()
        noise_sq = noise_sq + 1e-30  # the first is 0, where the root has no derivative
        move = g * helpers.as_like(c.lr / (self.noise_scale(noise_sq, s, c) * c.beta + c.gamma), g)
        s.x_k.sub_(move)
        update = helpers.add_((p - s.x_k).mul_(c.pull), move, (1 - c.pull) * c.alpha)
        return helpers.scaled(update, c.active)
