"""The rule over lists of tensors through torch's ``_foreach_`` kernels: few launches for many tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from torch import Tensor

from ..granularity import Granularity
from .base import Batch, Item, Totals, add_totals, reduce_whole, run_whole
from .stacked import StackedRunner
from .tensor_list import TensorList

__all__ = ["ForeachEngine"]


class ForeachEngine:
    """Runs the pipeline once over many tensors, in bundles bounded in bytes."""

    name = "foreach"

    def __init__(self) -> None:
        self._stacked = StackedRunner()

    def step(self, batch: Batch) -> None:
        """Take the step of every item."""
        if batch.pipeline.granularity is Granularity.MATRIX:
            return self._stacked.step(batch)  # there is no foreach product of matrices
        for items in _bundles(batch):
            if len(items) == 1:
                item = items[0]
                run_whole(batch.pipeline, item.param, item.grad, item.state, batch.scalars, item.draw())
                continue
            p, g, state = _listed(items)
            noise = None if items[0].noise is None else TensorList([cast(Tensor, item.draw()) for item in items])
            run_whole(batch.pipeline, p, g, state, batch.scalars, noise)
        return None

    def reduce(self, batch: Batch) -> Totals:
        """Sum the rule's reductions over all items."""
        totals: Totals = {}
        for items in _bundles(batch):
            p, g, state = _listed(items)
            for name, sums in reduce_whole(batch.pipeline, p, g, state, batch.scalars).items():
                for part in cast(Any, sums).tensors:
                    add_totals(totals, {name: part})
        return totals


def _listed(items: Sequence[Item]) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Parameters, gradients and states as lists that pass for tensors."""
    names = items[0].state
    listed = (
        TensorList([item.param for item in items]),
        TensorList([item.grad for item in items]),
        {name: TensorList([item.state[name] for item in items]) for name in names},
    )
    return cast("tuple[Tensor, Tensor, dict[str, Tensor]]", listed)


def _bundles(batch: Batch) -> Iterator[list[Item]]:
    """Items that may share a list, up to the bound: all of an elementwise rule, those of one shape of any other."""
    kinds: dict[Any, list[Item]] = {}
    elementwise = batch.pipeline.granularity is Granularity.ELEMENTWISE
    for item in batch.items:
        kinds.setdefault(None if elementwise else item.param.shape, []).append(item)
    for items in kinds.values():
        bundle: list[Item] = []
        size = 0
        for item in items:
            bytes_ = item.param.numel() * item.param.element_size()
            if bundle and size + bytes_ > batch.chunk_bytes:
                yield bundle
                bundle, size = [], 0
            bundle.append(item)
            size += bytes_
        yield bundle
