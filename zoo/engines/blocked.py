"""Cache-sized blocks of an elementwise rule: temporaries stay in cache, none is as large as a parameter.

A block is a slice of a large tensor, or a bundle of small ones: the gradients and parameters of a bundle are
concatenated, the rule runs once, the parameters are copied back. The states of a bundle live in flat buffers
between steps; every parameter's state is a view of them, so readers see what they see everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from ..granularity import Granularity
from .base import Batch, Item, Totals, add_totals, reduce_whole, run_whole
from .stacked import StackedRunner

__all__ = ["SMALL", "BlockedEngine", "Bundle", "Layout", "flat_item", "flat_view", "layout_of"]

SMALL = 2**14
"""Tensors below this many elements are bundled; from here on slices alone are faster (measured)."""
BUNDLE = 2**17
"""Elements a bundle (measured)."""


def flat_view(tensor: Tensor) -> Tensor | None:
    """A 1-D view over a dense tensor's memory, in memory order; None where the tensor has gaps or overlaps."""
    if tensor.is_contiguous():
        return tensor.view(-1)
    in_order = tensor.permute(sorted(range(tensor.ndim), key=tensor.stride, reverse=True))
    return in_order.view(-1) if in_order.is_contiguous() else None


def flat_item(item: Item) -> tuple[Tensor, Tensor, dict[str, Tensor]] | None:
    """Parameter, gradient and state as 1-D views in one common memory order; None where there is none.

    A gradient in another order than its parameter is copied into the parameter's.
    """
    # Detached, because a compiled kernel is one for tensors that need gradients and another for those that don't.
    p, g = item.param.detach(), item.grad
    flat_p = flat_view(p)
    if flat_p is None:
        return None
    if g.stride() != p.stride() and not (g.is_contiguous() and p.is_contiguous()):
        g = torch.empty_like(p, dtype=g.dtype).copy_(g)
    flat_g = flat_view(g)
    states: dict[str, Tensor] = {}
    for name, tensor in item.state.items():
        same_order = tensor.stride() == p.stride() or (tensor.is_contiguous() and p.is_contiguous())
        flat = flat_view(tensor) if tensor.shape == p.shape and same_order else None
        if flat is None:
            return None
        states[name] = flat
    return None if flat_g is None else (flat_p, flat_g, states)


@dataclass(slots=True)
class Bundle:
    """Small parameters whose states live side by side in flat buffers."""

    items: list[Item]
    state: dict[str, Tensor]

    def gather(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Parameters, gradients and noise of the bundle, each as one flat tensor."""
        params = torch._utils._flatten_dense_tensors([item.param for item in self.items])
        grads = torch._utils._flatten_dense_tensors([item.grad for item in self.items])
        if self.items[0].noise is None:
            return params, grads, None
        noise = [item.noise(item.param.numel()) for item in self.items if item.noise is not None]
        return params, grads, torch.cat(noise)

    def scatter(self, flat: Tensor) -> None:
        """Write the flat parameters back to where they belong."""
        params = [item.param for item in self.items]
        torch._foreach_copy_(params, list(torch._utils._unflatten_dense_tensors(flat, params)))


@dataclass(slots=True)
class Layout:
    """How a batch is cut: bundles of small tensors, large ones, and odd ones that run whole."""

    bundles: list[Bundle]
    large: list[Item]
    odd: list[Item]


def layout_of(batch: Batch) -> Layout:
    """The batch's layout, made at its first step and kept with it."""
    layout = batch.cache.get("layout")
    if layout is None:
        small, large, odd = split_by_size(batch.items)
        layout = batch.cache["layout"] = Layout([_adopt(part) for part in _parts(small)], large, odd)
    return cast(Layout, layout)


def _parts(items: Sequence[Item]) -> list[list[Item]]:
    parts: list[list[Item]] = []
    room = 0
    for item in items:
        size = item.param.numel()
        if size > room or not parts:
            parts.append([])
            room = BUNDLE
        parts[-1].append(item)
        room -= size
    return parts


def _adopt(items: list[Item]) -> Bundle:
    """Move the items' states into flat buffers; each state entry becomes a view with the values it had."""
    buffers: dict[str, Tensor] = {}
    views: list[dict[str, Tensor]] = [{} for _ in items]
    for name in items[0].state:
        tensors = [item.state[name] for item in items]
        buffer = torch.cat([tensor.reshape(-1) for tensor in tensors])
        buffers[name] = buffer
        start = 0
        for view, tensor in zip(views, tensors, strict=True):
            view[name] = buffer[start : start + tensor.numel()].view(tensor.shape)
            start += tensor.numel()
    for item, view in zip(items, views, strict=True):
        item.state.update(view)
        item.home.update(view)
    return Bundle(items, buffers)


class BlockedEngine:
    """Runs an elementwise pipeline block by block; other rules run over stacks of equal shapes."""

    name = "blocked"

    def __init__(self) -> None:
        self._stacked = StackedRunner()

    def step(self, batch: Batch) -> None:
        """Take the step of every item."""
        if batch.pipeline.granularity is not Granularity.ELEMENTWISE:
            return self._stacked.step(batch)
        layout = layout_of(batch)
        odd = list(layout.odd)
        for bundle in layout.bundles:
            p, g, noise = bundle.gather()
            run_whole(batch.pipeline, p, g, bundle.state, batch.scalars, noise)
            bundle.scatter(p)
        for item in layout.large:
            if not self._step_in_slices(batch, item):
                odd.append(item)
        for item in odd:
            run_whole(batch.pipeline, item.param, item.grad, item.state, batch.scalars, item.draw())

    def reduce(self, batch: Batch) -> Totals:
        """Sum the rule's reductions over all blocks."""
        totals: Totals = {}
        for item in batch.items:
            flat = flat_item(item) if batch.pipeline.granularity is Granularity.ELEMENTWISE else None
            if flat is None:
                add_totals(totals, reduce_whole(batch.pipeline, item.param, item.grad, item.state, batch.scalars))
                continue
            for p, g, state in _slices(*flat, batch.block_size):
                add_totals(totals, reduce_whole(batch.pipeline, p, g, state, batch.scalars))
        return totals

    @staticmethod
    def _step_in_slices(batch: Batch, item: Item) -> bool:
        flat = flat_item(item)
        if flat is None:
            return False
        for p, g, state in _slices(*flat, batch.block_size):
            noise = item.noise(p.numel()) if item.noise is not None else None
            run_whole(batch.pipeline, p, g, state, batch.scalars, noise)
        return True


def split_by_size(items: Sequence[Item]) -> tuple[list[Item], list[Item], list[Item]]:
    """The items as (small enough to bundle, large, odd).

    Odd are small ones that are not contiguous, or whose state is not stored as the engine sees it (complex,
    distributed): it could not become a view of a bundle.
    """
    small: list[Item] = []
    large: list[Item] = []
    odd: list[Item] = []
    for item in items:
        p = item.param
        if p.numel() >= SMALL:
            large.append(item)
        elif p.is_contiguous() and item.plain and all(s.shape == p.shape for s in item.state.values()):
            small.append(item)
        else:
            odd.append(item)
    return small, large, odd


def _slices(
    p: Tensor, g: Tensor, state: dict[str, Tensor], block: int
) -> Iterable[tuple[Tensor, Tensor, dict[str, Tensor]]]:
    if p.numel() <= block:
        return [(p, g, state)]
    ps, gs = p.split(block), g.split(block)
    if not state:
        return [(p, g, {}) for p, g in zip(ps, gs, strict=True)]
    parts = zip(*(tensor.split(block) for tensor in state.values()), strict=True)
    states = [dict(zip(state, part, strict=True)) for part in parts]
    return zip(ps, gs, states, strict=True)
