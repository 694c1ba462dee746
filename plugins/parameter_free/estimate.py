"""What rules that estimate the distance d to the solution share: its memory, its growth, its learning rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, helpers
from zoo.config import LearningRate, Positive


class EstimateConfig(OptimizerConfig):
    """Options of every rule that estimates d."""

    lr: LearningRate = Field(
        1.0, description="Multiplier of the estimated learning rate; 1 is right, schedules multiply it."
    )
    d0: Positive = Field(1e-6, description="First estimate of d; rarely matters unless it is too large.")
    growth_rate: float | None = Field(
        None, gt=1.0, description="Largest factor by which d may grow in a step; None: any."
    )


C = TypeVar("C", bound=EstimateConfig)


class DistanceEstimate(BaseOptimizer[C], rule=Granularity.GLOBAL, update=Granularity.ELEMENTWISE):
    """Base of rules whose learning rate is an estimate d of the distance to the solution.

    d belongs to all parameters together: it stands in every parameter group as ``d``, a 0-dim float64 tensor. Groups may
    have learning rates of their own, which multiply d; a group with lr 0 stands still and adds nothing to the estimate.
    """

    def init_shared(self, cfg: C) -> dict[str, Any]:
        return {"d": torch.tensor(cfg.d0, dtype=torch.float64), **{name: _zero() for name in self.memory}}

    memory: tuple[str, ...] = ()
    """Names of further running sums."""

    def scalars(self, cfg: C, step: Any) -> Scalars:
        return Scalars(active=helpers.where(cfg.lr > 0, 1.0, 0.0))

    def advance(self, cfg: C, group: dict[str, Any], step: Any) -> Mapping[str, Any]:
        # The count of the group's oldest parameter: the estimate is of all parameters, and so is its clock.
        return {"first": step == 1, "bias": self.bias(cfg, step)}

    def bias(self, cfg: C, step: Any) -> Any:
        """Factor of the step size that corrects the bias of the moments; 1 for none."""
        return 1.0

    def grown(self, d: Tensor, d_hat: Tensor, c: Scalars) -> Tensor:
        """max(d, min(d̂, growth_rate · d)): the estimate never falls."""
        return torch.maximum(d, d_hat if c.growth_rate is None else torch.minimum(d_hat, d * c.growth_rate))

    def adjust(self, c: Scalars) -> None:
        # The step that was begun with the old d is finished with it.
        c.dlr = c.old_d * c.lr * c.bias
        c.decay = c.weight_decay * c.dlr

    def learning_rate(self, group: Mapping[str, Any]) -> Any:
        return group["d"] * group["lr"]


def _zero() -> Tensor:
    return torch.zeros((), dtype=torch.float64)


def norm_sq(x: Tensor) -> Tensor:
    """‖x‖² in float64: squares of large float32 numbers do not overflow."""
    norm: Tensor = torch.linalg.vector_norm(x, dtype=torch.float64)
    return norm.square()


def ratio_or(numerator: Tensor, denominator: Tensor, otherwise: Tensor) -> Tensor:
    """numerator/denominator where that is a number (some gradient was not zero, no sum overflowed), else ``otherwise``."""
    ratio = numerator / torch.where(denominator > 0, denominator, torch.ones_like(denominator))
    usable = (denominator > 0) & torch.isfinite(ratio)
    return torch.where(usable, ratio, otherwise.to(ratio.dtype))


def kept(new: Tensor, old: Tensor) -> Tensor:
    """``new`` where it is finite, else ``old``: one overflow must not spoil a sum for ever."""
    return torch.where(torch.isfinite(new), new.to(old.dtype), old)
