"""The reference: plain eager, tensor by tensor; autograd can flow through it."""

from __future__ import annotations

import torch
from torch import Tensor

from ..pipeline import State
from .base import Batch, Item, Totals, add_totals, reduce_whole, run_whole

__all__ = ["LoopEngine"]


class LoopEngine:
    """Runs the pipeline on one whole tensor after another."""

    name = "loop"

    def step(self, batch: Batch) -> None:
        """Take the step of every item."""
        for item in batch.items:
            if batch.differentiable:
                self._step_functionally(batch, item)
            else:
                run_whole(batch.pipeline, item.param, item.grad, item.state, batch.scalars, item.draw())

    def reduce(self, batch: Batch) -> Totals:
        """Sum the rule's reductions over all items."""
        totals: dict[str, Tensor] = {}
        for item in batch.items:
            add_totals(totals, reduce_whole(batch.pipeline, item.param, item.grad, item.state, batch.scalars))
        return totals

    @staticmethod
    def _step_functionally(batch: Batch, item: Item) -> None:
        # The rule changes fresh copies, so that no tensor that backward needs is overwritten by a later step.
        s = State(**{name: tensor.clone() for name, tensor in item.state.items()})
        batch.pipeline(item.param, item.param, item.grad, s, batch.scalars)
        item.state.update(vars(s))
        for name, tensor in vars(s).items():
            item.home[name] = torch.view_as_complex(tensor) if item.home[name].is_complex() else tensor
