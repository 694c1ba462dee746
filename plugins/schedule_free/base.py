"""What schedule-free rules share: the averaging weights, and the two modes of the weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, State, helpers
from zoo.config import NonNegative


class ScheduleFreeConfig(OptimizerConfig):
    """Options of every schedule-free rule; defaults are the authors'."""

    warmup_steps: int = Field(0, ge=0, description="Steps of linear warm-up.")
    r: NonNegative = Field(0.0, description="Power of the step count in the averaging weights.")
    weight_lr_power: NonNegative = Field(
        2.0, description="Power of the largest learning rate so far in the averaging weights."
    )


C = TypeVar("C", bound=ScheduleFreeConfig)


class ScheduleFree(BaseOptimizer[C], rule=Granularity.ELEMENTWISE):
    """Base of rules that train y = (1−β)z + βx, where z takes the steps and x averages it.

    In train mode the parameters hold y, in eval mode x: call ``opt.train()`` before training steps and ``opt.eval()``
    before evaluating or saving a model for use; both may be called twice. The mode is part of every checkpoint.
    """

    def init_group(self, cfg: C) -> dict[str, Any]:
        return {"train_mode": True, "weight_sum": 0.0, "lr_max": 0.0, "scheduled_lr": 0.0}

    def init_state(self, p: Tensor, cfg: C) -> dict[str, Tensor]:
        return {"z": p.clone(memory_format=torch.preserve_format)}

    def decay_mode(self, cfg: C) -> str:
        return "rule"  # the authors' decay joins the normalized gradient, at y

    def interpolation(self, options: Any) -> Any:
        """β, the share of x in y."""
        return options.beta1

    def schedule(self, cfg: C, step: Any) -> Any:
        """Factor of the learning rate at this step: the warm-up."""
        return helpers.minimum(1.0, step / cfg.warmup_steps) if cfg.warmup_steps else 1.0

    def advance(self, cfg: C, group: dict[str, Any], step: Any) -> Mapping[str, Any]:
        lr = cfg.lr * self.schedule(cfg, step)
        group["scheduled_lr"] = lr
        group["lr_max"] = helpers.maximum(group["lr_max"], lr)
        weight = step**cfg.r * group["lr_max"] ** cfg.weight_lr_power
        group["weight_sum"] = group["weight_sum"] + weight
        # Where lr is 0 nothing moves, not even towards the average.
        share = helpers.where(lr > 0, weight / helpers.maximum(group["weight_sum"], 1e-38), 0.0)
        return {"y_lr": lr, "share": share}

    def averaged_step(self, direction: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor:
        """The update of y for a step of z along ``direction``, which is taken here."""
        if c.decays:
            direction = helpers.add_scaled(direction, p, c.weight_decay)
        update = direction * (c.y_lr * (1 - self.interpolation(c) * (1 - c.share))) - (s.z - p) * c.share
        helpers.add_(s.z, direction, -c.y_lr)
        return update

    def scalars(self, cfg: C, step: Any) -> Scalars:
        return Scalars(decays=bool(cfg.weight_decay != 0))

    def learning_rate(self, group: Mapping[str, Any]) -> Any:
        return group["scheduled_lr"]

    def train(self) -> None:
        """Let the parameters hold y, the weights that training steps change."""
        self._switch(True)

    def eval(self) -> None:
        """Let the parameters hold x, the average to evaluate and to keep."""
        self._switch(False)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Eval mode inside a ``with`` block; the mode there was before, after it."""
        was_training = self.param_groups[0]["train_mode"]
        self.eval()
        try:
            yield
        finally:
            self._switch(was_training)

    @torch.no_grad()
    def _switch(self, training: bool) -> None:
        for group in self.param_groups:
            if group["train_mode"] == training:
                continue
            beta = self.interpolation(self._hyper(group))
            # x = z + (y − z)/β and back: y = z + (x − z)·β
            weight = 1 - beta if training else 1 - 1 / max(beta, 1e-38)
            for p in group["params"]:
                z = self.state.get(p, {}).get("z")
                if z is not None and beta > 0:
                    p.lerp_(z.to(p.dtype), weight)
            group["train_mode"] = training

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a parameter group, in the mode of those there are."""
        super().add_param_group(param_group)
        self.param_groups[-1]["train_mode"] = self.param_groups[0]["train_mode"]

    def prepare(self, work: Any) -> None:
        if not all(group["train_mode"] for group, _ in work):
            raise RuntimeError(
                f"{self._name()}: a step in eval mode would train the averaged weights; call opt.train() before training "
                "(and opt.eval() before evaluating or saving)"
            )
