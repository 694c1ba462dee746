"""What a group's step needs and what stays the same between steps: found once, checked cheaply each time.

A plan holds the parameters that step together, split into batches of equal step count, device and dtype. The
step counts of a plan live in one buffer, and every parameter's ``state["step"]`` is a 0-dim view of it, so that
a thousand small parameters count in one operation. A plan is dropped as soon as a parameter, a state tensor, a
dtype or the structure of the options is another one.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from .engines.base import Batch

__all__ = ["Plan"]

Key = tuple[Any, torch.device, torch.dtype]


class Plan:
    """The batches of one parameter group, and the proof that they still hold.

    Args:
        params: the group's parameters that take part, in order.
        states: their states, in the same order, complete.
        structure: what else the batches depend on: the options that are no numbers.
        counts: whether the states hold ``step``.
    """

    def __init__(self, params: list[Tensor], states: list[dict[str, Tensor]], structure: Any, counts: bool) -> None:
        self.params = params
        self.states = states
        self.structure = structure
        self.counters: Tensor | None = None
        self.batches: list[Batch] = []
        self.members: list[list[int]] = []
        self.first = 0
        self._dtypes = [p.dtype for p in params]
        self._snapshot: list[Tensor] = []
        if counts:
            self._adopt_counters()

    def _adopt_counters(self) -> None:
        counters = torch.stack([state["step"] for state in self.states])
        self.counters = counters
        for state, counter in zip(self.states, counters.unbind(), strict=True):
            state["step"] = counter

    def keys(self) -> list[Key]:
        """The batch that each parameter belongs to. Reads the counters: on an accelerator this syncs, once a plan."""
        steps: list[Any] = [None] * len(self.params)
        if self.counters is not None and not self.counters.is_meta:
            steps = self.counters.tolist()
        return [(step, p.device, p.dtype) for step, p in zip(steps, self.params, strict=True)]

    def seal(self) -> None:
        """Remember the state tensors as they are after the engines made them theirs."""
        self._snapshot = list(chain.from_iterable(state.values() for state in self.states))

    def holds(self, params: Sequence[Tensor], structure: Any) -> bool:
        """Whether nothing changed that the batches depend on."""
        if structure != self.structure or len(params) != len(self.params):
            return False
        if not all(map(operator.is_, params, self.params)):
            return False
        present = list(chain.from_iterable(state.values() for state in self.states))
        return (
            len(present) == len(self._snapshot)
            and all(map(operator.is_, present, self._snapshot))
            and [p.dtype for p in params] == self._dtypes
        )

    def count(self) -> None:
        """Every counter one up."""
        if self.counters is not None:
            self.counters.add_(1)

    def uncount(self) -> None:
        """Take the last ``count`` back."""
        if self.counters is not None:
            self.counters.sub_(1)
