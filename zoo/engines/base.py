"""What an engine is given and what it must do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from ..pipeline import Pipeline, Scalars, State, compute_dtype

__all__ = ["Batch", "Engine", "Item", "Totals", "load_state", "run_whole", "store_state"]

Totals = dict[str, Tensor]
"""Sums of a global rule, by name."""


@dataclass(slots=True)
class Item:
    """One parameter with what belongs to it, as plain real (never distributed) tensors in their storage dtype."""

    param: Tensor
    grad: Tensor
    state: dict[str, Tensor]
    key: Tensor
    """The parameter as the user knows it: the identity that caches are keyed by."""
    home: dict[str, Tensor]
    """Where the optimizer keeps the state, ``step`` included: ``state`` may hold views of its tensors."""
    finish: Callable[[], None] | None = None
    """To be called after the step: brings gathered tensors back into their shards."""
    plain: bool = True
    """Whether parameter and state are the user's own tensors, not views (complex, distributed) of them."""
    noise: Callable[[int], Tensor] | None = None
    """Draws the next n int32 numbers in [0, 2¹⁶) for stochastic rounding; the same stream however it is cut."""

    def draw(self) -> Tensor | None:
        """Noise for the whole parameter, in its shape; None where none is needed."""
        return self.noise(self.param.numel()).view(self.param.shape) if self.noise is not None else None


@dataclass(slots=True)
class Batch:
    """Parameters of one group that share the step count, the device and the dtype."""

    pipeline: Pipeline
    scalars: Scalars
    items: Sequence[Item]
    engine: Engine
    block_size: int = 2**18
    chunk_bytes: int = 2**28
    differentiable: bool = False
    cache: dict[str, Any] = field(default_factory=dict)
    """What engines keep between steps about this batch; dropped with the plan that the batch belongs to."""


class Engine(Protocol):
    """Runs a pipeline over a batch. Engines hold caches only: dropping one loses nothing but time."""

    name: str

    def step(self, batch: Batch) -> None:
        """Take the step of every item: parameters and states change in place."""
        ...

    def reduce(self, batch: Batch) -> Totals:
        """Sum the rule's reductions over all items; states may change, parameters do not."""
        ...


def load_state(state: Mapping[str, Tensor], dtype: torch.dtype) -> State:
    """The state in the dtype of the computation: floating tensors are converted, the rest are passed as they are."""
    return State(**{k: v.to(dtype) if v.is_floating_point() else v for k, v in state.items()})


def store_state(stored: dict[str, Tensor], s: State) -> None:
    """Write back what the rule converted or rebound; what it changed in place is already there."""
    for name, tensor in stored.items():
        value = getattr(s, name)
        if value is not tensor:
            tensor.copy_(value)


def run_whole(
    pipeline: Pipeline, p: Tensor, g: Tensor, state: dict[str, Tensor], c: Scalars, noise: Tensor | None
) -> None:
    """The pipeline on whole tensors (or lists of them), with conversions to and from the dtype of the computation."""
    dtype = compute_dtype(p.dtype)
    s = load_state(state, dtype)
    pipeline(p, p.to(dtype), g.to(dtype), s, c, noise)
    store_state(state, s)


def reduce_whole(pipeline: Pipeline, p: Tensor, g: Tensor, state: dict[str, Tensor], c: Scalars) -> Totals:
    """The reductions of a global rule on whole tensors, in the dtype of the computation."""
    dtype = compute_dtype(p.dtype)
    s = load_state(state, dtype)
    totals = dict(pipeline.reduce(p.to(dtype), g.to(dtype), s, c))
    store_state(state, s)
    return totals


def add_totals(into: Totals, more: Mapping[str, Tensor]) -> None:
    """Add sums to sums of the same names."""
    for name, value in more.items():
        into[name] = into[name] + value if name in into else value
