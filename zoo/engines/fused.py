"""torch's own fused kernels, where one computes exactly the rule with exactly these options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from ..pipeline import Scalars, Slots
from .base import Batch, Engine, Item, Totals
from .blocked import BlockedEngine, flat_view

__all__ = ["FusedAdagrad", "FusedAdam", "FusedEngine", "FusedKernel", "FusedSGD", "has_fused_kernel"]

_KNOWN_SLOTS = ("maximize", "l2", "decay")


class FusedKernel(Protocol):
    """A kernel of torch for one rule, set as the rule's ``fused_kernel``."""

    def applies(self, c: Scalars, slots: Slots) -> bool:
        """Whether the kernel computes what the rule does with these options and slots."""
        ...

    def run(self, items: list[Item], c: Scalars, slots: Slots) -> None:
        """One step of all items, which share device and dtype."""
        ...


def has_fused_kernel(batch: Batch) -> bool:
    """Whether torch has a kernel for this batch: its rule, options, dtypes and layouts."""
    kernel: FusedKernel | None = getattr(batch.pipeline.rule, "fused_kernel", None)
    slots = batch.pipeline.slots
    plain = all(value == getattr(Slots, name) for name, value in vars(slots).items() if name not in _KNOWN_SLOTS)
    if kernel is None or not plain or not kernel.applies(batch.scalars, slots):
        return False
    return batch.items[0].param.device.type in ("cpu", "cuda", "mps", "xpu") and all(map(_fits, batch.items))


def _fits(item: Item) -> bool:
    p = item.param
    same = all(t.dtype is p.dtype and t.stride() == p.stride() for t in item.state.values())
    # The kernels walk memory: a parameter with gaps, such as every second row, is not theirs.
    return item.plain and same and item.grad.dtype is p.dtype and flat_view(p) is not None


class FusedEngine:
    """Runs torch's kernel on a batch that has one."""

    name = "fused"

    def __init__(self) -> None:
        self._rest: Engine = BlockedEngine()

    def step(self, batch: Batch) -> None:
        """Take the step of every item."""
        kernel: FusedKernel = batch.pipeline.rule.fused_kernel  # type: ignore[attr-defined]
        items = [item if item.grad.stride() == item.param.stride() else _aligned(item) for item in batch.items]
        kernel.run(items, batch.scalars, batch.pipeline.slots)

    def reduce(self, batch: Batch) -> Totals:
        """Sum the rule's reductions over all items."""
        return self._rest.reduce(batch)


def _aligned(item: Item) -> Item:
    """The item with its gradient copied into the parameter's memory order."""
    grad = torch.empty_like(item.param).copy_(item.grad)
    return Item(item.param, grad, item.state, item.key, item.home)


def _states(items: list[Item], name: str) -> list[Tensor]:
    return [item.state[name] for item in items]


def _steps(items: list[Item]) -> list[Tensor]:
    return [item.home["step"] for item in items]


@dataclass(frozen=True)
class FusedAdam:
    """``torch._fused_adam_`` and ``torch._fused_adamw_`` for rules with Adam's states.

    Args:
        without: options of the rule that must be off (False or None).
    """

    without: tuple[str, ...] = ()

    def applies(self, c: Scalars, slots: Slots) -> bool:
        return c.decay_mode != "independent" and not any(getattr(c, name) for name in self.without)

    def run(self, items: list[Item], c: Scalars, slots: Slots) -> None:
        kernel: Callable[..., Any] = torch._fused_adamw_ if slots.decay else torch._fused_adam_
        kernel(
            [item.param for item in items],
            [item.grad for item in items],
            _states(items, "exp_avg"),
            _states(items, "exp_avg_sq"),
            _states(items, "max_exp_avg_sq") if c.amsgrad else [],
            _steps(items),
            lr=c.lr,
            beta1=c.beta1,
            beta2=c.beta2,
            weight_decay=c.weight_decay,
            eps=c.eps,
            amsgrad=c.amsgrad,
            maximize=slots.maximize,
        )


@dataclass(frozen=True)
class FusedSGD:
    """``torch._fused_sgd_``, once every parameter has its momentum buffer."""

    def applies(self, c: Scalars, slots: Slots) -> bool:
        return not slots.decay and c.dampening == 0

    def run(self, items: list[Item], c: Scalars, slots: Slots) -> None:
        torch._fused_sgd_(
            [item.param for item in items],
            [item.grad for item in items],
            _states(items, "momentum_buffer") if c.heavy else [],
            weight_decay=c.weight_decay,
            momentum=c.momentum,
            lr=c.lr,
            dampening=c.dampening,
            nesterov=c.nesterov,
            maximize=slots.maximize,
            is_first_step=False,
        )


@dataclass(frozen=True)
class FusedAdagrad:
    """``torch._fused_adagrad_``: CPU only."""

    def applies(self, c: Scalars, slots: Slots) -> bool:
        return not slots.decay

    def run(self, items: list[Item], c: Scalars, slots: Slots) -> None:
        torch._fused_adagrad_(
            [item.param for item in items],
            [item.grad for item in items],
            _states(items, "sum"),
            _steps(items),
            lr=c.lr,
            lr_decay=c.lr_decay,
            weight_decay=c.weight_decay,
            eps=c.eps,
            maximize=slots.maximize,
        )
