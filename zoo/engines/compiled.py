"""The rule through ``torch.compile``: one kernel a rule and dtype, for every size and every schedule.

An elementwise rule is compiled for one flat tensor of dynamic size, not for a list of parameters, so compiling
takes seconds whatever the model. Every number that may change between steps (lr, betas, what ``scalars``
returns) enters as an element of one float64 tensor, so no schedule recompiles; only bools, ints and text are
baked in, and they choose another kernel.
"""

from __future__ import annotations

import itertools
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from ..granularity import Granularity
from ..pipeline import Pipeline, Scalars
from .base import Batch, Engine, Item, Totals, run_whole
from .blocked import BlockedEngine, Layout, flat_item, layout_of

__all__ = ["CompiledEngine"]


Static = tuple[tuple[str, Any], ...]
StateLayout = tuple[tuple[str, bool], ...]
"""Names of the states, and whether each is 0-dim."""
Names = tuple[tuple[str, int | None], ...]


class CompiledEngine:
    """Runs compiled kernels; a rule that cannot be compiled here runs in the blocked engine, after one warning."""

    name = "compiled"

    def __init__(self) -> None:
        self._fallback: Engine = BlockedEngine()

    def step(self, batch: Batch) -> None:
        """Take the step of every item."""
        names, values, static = split_scalars(batch.scalars)
        layout_of_state = tuple((name, tensor.ndim == 0) for name, tensor in batch.items[0].state.items())
        kernel = _kernel(batch.pipeline, layout_of_state, names, static)
        if kernel.broken:
            return self._fallback.step(batch)
        scalars = _stacked(values, batch.items[0].param)
        elementwise = batch.pipeline.granularity is Granularity.ELEMENTWISE
        layout = layout_of(batch) if elementwise else Layout([], list(batch.items), [])
        odd = list(layout.odd)
        for bundle in layout.bundles:
            p, g, noise = bundle.gather()
            if not kernel(p, g, bundle.state, scalars, noise):
                return self._fallback.step(batch)  # the kernel's first call: nothing has changed yet
            bundle.scatter(p)
        for index, item in enumerate(layout.large):
            if item.param.numel() < 2:  # sizes 0 and 1 would be compiled for themselves
                odd.append(item)
                continue
            flat = flat_item(item) if elementwise else (item.param, item.grad, item.state)
            if flat is None:
                odd.append(item)
            elif not kernel(*flat, scalars, _noise(item, flat[0])):
                return self._fallback.step(replace(batch, items=[*layout.large[index:], *odd], cache={}))
        for item in odd:
            run_whole(batch.pipeline, item.param, item.grad, item.state, batch.scalars, item.draw())
        return None

    def reduce(self, batch: Batch) -> Totals:
        """Sum the rule's reductions over all items."""
        return self._fallback.reduce(batch)


def _noise(item: Item, like: Tensor) -> Tensor | None:
    return item.noise(like.numel()).view(like.shape) if item.noise is not None else None


def _stacked(values: Sequence[Any], like: Tensor) -> Tensor:
    # float64, so that 1 - β₂ is as exact as in Python; inside the kernel they meet float32 tensors as numbers do.
    dtype = torch.float32 if like.device.type == "mps" else torch.float64
    if any(isinstance(value, Tensor) for value in values):
        return torch.stack([torch.as_tensor(v, dtype=dtype, device=like.device).reshape(()) for v in values])
    return torch.tensor(values, dtype=dtype, device=like.device)


def split_scalars(c: Scalars) -> tuple[Names, list[Any], Static]:
    """Names and values of what may change between steps, and what is fixed in the kernel."""
    names: list[tuple[str, int | None]] = []
    values: list[Any] = []
    static: list[tuple[str, Any]] = []
    for name, value in vars(c).items():
        if isinstance(value, (float, Tensor)):
            names.append((name, None))
            values.append(value)
        elif isinstance(value, tuple) and value and all(isinstance(v, (float, Tensor)) for v in value):
            names.extend((name, index) for index in range(len(value)))
            values.extend(value)
        else:
            static.append((name, value))
    return tuple(names), values, tuple(static)


def _joined(names: Names, numbers: Sequence[Tensor], static: Static) -> Scalars:
    """The scalars again, from the tensors of a kernel."""
    c = Scalars(**dict(static))
    tuples: dict[str, tuple[Tensor, ...]] = {}
    for (name, index), number in zip(names, numbers, strict=True):
        if index is None:
            setattr(c, name, number)
        else:
            tuples[name] = (*tuples.get(name, ()), number)
    for name, numbers_ in tuples.items():
        setattr(c, name, numbers_)
    return c


class Kernel:
    """One compiled pipeline. The first call compiles; when that fails, nothing has changed and the kernel is broken."""

    def __init__(self, pipeline: Pipeline, state_layout: StateLayout, names: Names, static: Static) -> None:
        def run(p: Tensor, g: Tensor, states: list[Tensor], scalars: Tensor, noise: Tensor | None) -> None:
            c = _joined(names, scalars.unbind(), static)
            state = {
                name: tensor.squeeze(0) if single else tensor
                for (name, single), tensor in zip(state_layout, states, strict=True)
            }
            run_whole(pipeline, p, g, state, c, noise)

        # Dynamo keeps its cache, and counts recompilations, per code object: each kernel gets its own.
        label = f"{type(pipeline.rule).__name__.lower()}_{next(_serial)}"
        code = run.__code__.replace(co_name=label)
        own = types.FunctionType(code, run.__globals__, label, run.__defaults__, run.__closure__)
        self._run: Callable[..., None] = torch.compile(own, fullgraph=True, dynamic=True)
        self._label = label
        self._proven = False
        self.broken = False

    def __call__(
        self, p: Tensor, g: Tensor, state: Mapping[str, Tensor], scalars: Tensor, noise: Tensor | None
    ) -> bool:
        """Run over one tensor; False, with everything untouched, where the kernel cannot be compiled."""
        # Dynamo takes a 0-dim tensor on the CPU for a number and loses what is written to it: it enters as one element.
        states = [tensor.unsqueeze(0) if tensor.ndim == 0 else tensor for tensor in state.values()]
        if self._proven:
            self._run(p, g, states, scalars, noise)
            return True
        try:
            self._run(p, g, states, scalars, noise)
        except Exception as error:
            self.broken = True
            warnings.warn(
                f"zoo: the compiled engine cannot compile {self._label} here ({type(error).__name__}: "
                f"{str(error).splitlines()[0] if str(error) else ''}); the blocked engine runs it instead",
                stacklevel=2,
            )
            return False
        self._proven = True
        return True


_serial = itertools.count()


@cache
def _kernel(pipeline: Pipeline, state_layout: StateLayout, names: Names, static: Static) -> Kernel:
    return Kernel(pipeline, state_layout, names, static)
