"""Equal shapes stacked: a rule that looks at whole tensors or matrices runs once over all tensors of one shape.

The rule is written for one tensor; ``torch.func.vmap`` runs it over the stack, so that products of matrices become
one batched product and norms one reduction. The stack is a copy: small tensors always pay for it, large ones only
where the rule multiplies matrices.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from ..granularity import Granularity
from ..pipeline import Pipeline, Scalars, State, compute_dtype
from .base import Batch, Item, load_state, run_whole

__all__ = ["StackedRunner"]

logger = logging.getLogger("zoo")

SMALL = 2**16
"""Elements of a tensor up to which stacking pays for a rule that only reduces (measured)."""
STACK = 2**24
"""Elements of a stack at most."""


class StackedRunner:
    """Runs a batch stack by stack; tensors that stand alone, and rules that ``vmap`` can't run, go one by one."""

    def __init__(self) -> None:
        self._unstackable: set[Pipeline] = set()

    def step(self, batch: Batch) -> None:
        """Take the step of every item."""
        for items in _stacks(batch):
            if len(items) == 1 or batch.pipeline in self._unstackable or not self._step(batch, items):
                for item in items:
                    run_whole(batch.pipeline, item.param, item.grad, item.state, batch.scalars, item.draw())

    def _step(self, batch: Batch, items: list[Item]) -> bool:
        names = list(items[0].state)
        param = torch.stack([item.param.detach() for item in items])
        grad = torch.stack([item.grad for item in items])
        states = {name: torch.stack([item.state[name] for item in items]) for name in names}
        noise = [item.draw() for item in items]
        stacked_noise = None if noise[0] is None else torch.stack([n for n in noise if n is not None])
        try:
            param, states = _run(batch.pipeline, param, grad, states, stacked_noise, batch.scalars)
        except RuntimeError as error:  # an operation without a batching rule; only copies were touched
            self._unstackable.add(batch.pipeline)
            logger.info("%s runs tensor by tensor: %s", type(batch.pipeline.rule).__name__, error)
            return False
        torch._foreach_copy_([item.param for item in items], list(param.unbind()))
        for name in names:
            torch._foreach_copy_([item.state[name] for item in items], list(states[name].unbind()))
        return True


def _run(
    pipeline: Pipeline, param: Tensor, grad: Tensor, states: dict[str, Tensor], noise: Tensor | None, c: Scalars
) -> tuple[Tensor, dict[str, Tensor]]:
    dtype = compute_dtype(param.dtype)

    def one(p: Tensor, g: Tensor, state: dict[str, Tensor], n: Tensor | None) -> tuple[Tensor, dict[str, Tensor]]:
        s: State = load_state(state, dtype)
        pipeline(p, p.to(dtype), g.to(dtype), s, c, n)
        return p, {name: getattr(s, name).to(old.dtype) for name, old in state.items()}

    mapped: Any = torch.func.vmap(one, in_dims=(0, 0, 0, None if noise is None else 0))
    result: tuple[Tensor, dict[str, Tensor]] = mapped(param, grad, states, noise)
    return result


def _stacks(batch: Batch) -> Iterator[list[Item]]:
    """Items that may share a stack, in bounded numbers."""
    kinds: dict[Any, list[Item]] = {}
    matrices = batch.pipeline.granularity is Granularity.MATRIX
    for item in batch.items:
        if item.param.numel() > (STACK // 2 if matrices else SMALL) or not item.param.numel():
            yield [item]
        else:
            key = (item.param.shape, tuple(_signature(item)))
            kinds.setdefault(key, []).append(item)
    for items in kinds.values():
        most = max(1, STACK // items[0].param.numel())
        for start in range(0, len(items), most):
            yield items[start : start + most]


def _signature(item: Item) -> Iterable[tuple[str, Any, Any]]:
    return ((name, tensor.shape, tensor.dtype) for name, tensor in item.state.items())
