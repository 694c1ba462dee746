"""What rules with a Hessian diagonal share: estimating it now and then, or taking one from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, cast

import torch
from pydantic import Field
from torch import Tensor

from zoo import BaseOptimizer, Granularity, OptimizerConfig, Scalars, helpers
from zoo.noise import stream_seed


class HessianConfig(OptimizerConfig):
    """Options of every rule that estimates the Hessian's diagonal."""

    update_period: int = Field(1, ge=1, description="Estimate the Hessian at every n-th step.")
    num_samples: int = Field(1, ge=1, description="Random vectors an estimate.")
    distribution: Literal["rademacher", "gaussian"] = Field(
        "rademacher", description="Distribution of the random vectors."
    )


C = TypeVar("C", bound=HessianConfig)


class HessianRule(BaseOptimizer[C], rule=Granularity.ELEMENTWISE):
    """Base of rules that read ``hessian``, an estimate of the Hessian's diagonal, from a parameter's state.

    Call ``loss.backward(create_graph=True)``; the graph is freed, and ``p.grad`` detached, by the step. Or compute the
    diagonal yourself and hand it to :meth:`set_hessian` before the step: then no graph is needed.
    """

    needs_create_graph = True
    supports_complex = False

    def init_group(self, cfg: C) -> dict[str, Any]:
        return {"hessian_given": False}

    def init_state(self, p: Tensor, cfg: C) -> dict[str, Tensor]:
        return {"exp_avg": helpers.zeros_like(p), "hessian": helpers.zeros_like(p)}

    def scalars(self, cfg: C, step: Any) -> Scalars:
        return Scalars(fresh=helpers.where((step - 1) % cfg.update_period == 0, 1.0, 0.0))

    def set_hessian(self, hessian: Mapping[Tensor, Tensor] | Sequence[Tensor | None]) -> None:
        """Use this diagonal at the next step instead of an estimate.

        Args:
            hessian: a mapping from parameters, or one entry a parameter in the optimizer's order; None leaves what was.

        Raises:
            ValueError: for entries that fit no parameter. Nothing has changed then.
        """
        params = [p for group in self.param_groups for p in group["params"]]
        entries = helpers.assign_hessian(params, hessian)
        with torch.no_grad():
            for group in self.param_groups:
                group["hessian_given"] = True
                for p in group["params"]:
                    entry = entries.pop(0)
                    if entry is not None:
                        self._ensure_state(p, group)["hessian"].copy_(entry)

    def prepare(self, work: Sequence[tuple[dict[str, Any], list[Tensor]]]) -> None:
        params = [p for _, group_params in work for p in group_params]
        for group, group_params in work:
            if group["hessian_given"]:
                continue
            states = [self._ensure_state(p, group) for p in group_params]
            step = 1 + int(max(state["step"] for state in states))
            if (step - 1) % group["update_period"] == 0:
                self._estimate(group, group_params, states, step, last=group is work[-1][0])
        for group, _ in work:
            group["hessian_given"] = False
        helpers.detach_grads_(params)

    def _estimate(
        self, group: Mapping[str, Any], params: list[Tensor], states: list[dict[str, Tensor]], step: int, *, last: bool
    ) -> None:
        for p in params:
            if not cast(Tensor, p.grad).requires_grad:
                raise RuntimeError(
                    f"{self._name()}: the gradient of parameter {self._label(p)} has no graph; call "
                    "loss.backward(create_graph=True), or give the Hessian with opt.set_hessian(...)"
                )
        generator = torch.Generator().manual_seed(stream_seed(group["seed"], step, self._position(params[0])))
        estimates = helpers.hutchinson_hessian(
            params,
            [p.grad for p in params],
            generator=generator,
            samples=group["num_samples"],
            distribution=group["distribution"],
            retain_graph=not last,
        )
        for state, estimate in zip(states, estimates, strict=True):
            if estimate is not None:
                state["hessian"].copy_(estimate)
