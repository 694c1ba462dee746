"""What a step allocates: blocks stay blocks, foreach bundles stay within their bound, and nothing is kept."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import zoo
from zoo.capabilities import capabilities_of
from zoo.engines.foreach import _bundles

BLOCK = 2**14
SIZE = 2**17
ELEMENTWISE = [
    name
    for name in zoo.list_optimizers()
    if (can := capabilities_of(zoo.optimizer_class(name))).granularity is zoo.Granularity.ELEMENTWISE
    and not can.closure
    and not can.create_graph
]


class Allocations(TorchDispatchMode):
    """Records the bytes of the largest storage that appears, of those not known before."""

    def __init__(self, known: list[Tensor]) -> None:
        super().__init__()
        self.known = {tensor.untyped_storage().data_ptr() for tensor in known}
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                storage = leaf.untyped_storage()
                if storage.nbytes() and storage.data_ptr() not in self.known:
                    self.largest = max(self.largest, storage.nbytes())
        return result


def prepared(name: str, shapes: list[tuple[int, ...]], **options: Any) -> tuple[Any, list[Tensor]]:
    params = [torch.nn.Parameter(torch.ones(shape)) for shape in shapes]
    opt: Any = zoo.create_optimizer(name, params, **options)
    if hasattr(opt, "train"):
        opt.train()
    for _ in range(2):  # states are made, and small ones bundled, in the first step
        for p in params:
            p.grad = torch.full_like(p, 0.1)
        opt.step()
    states = [t for state in opt.state.values() for t in state.values()]
    return opt, [*params, *(p.grad for p in params if p.grad is not None), *states]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_blocked_allocates_nothing_larger_than_a_block(name: str) -> None:
    opt, known = prepared(name, [(SIZE,)], engine="blocked", block_size=BLOCK)
    with Allocations(known) as seen:
        opt.step()
    assert seen.largest <= 4 * BLOCK


@pytest.mark.parametrize("name", ["adamw", "lion"])
def test_foreach_stays_within_its_bound(name: str) -> None:
    shapes = [(2**18,)] * 6
    opt, _ = prepared(name, shapes, engine="foreach", foreach_chunk_bytes=2**21)
    (plan,) = opt._engines.plans.values()
    sizes = [sum(item.param.numel() * 4 for item in bundle) for bundle in _bundles(plan.batches[0])]
    assert sizes == [2**21] * 3


@pytest.mark.parametrize("name", ["adamw", "lion", "sgd"])
def test_steps_leave_nothing_behind(name: str) -> None:
    opt, _ = prepared(name, [(64, 8), (8,)])

    def tensors() -> int:
        gc.collect()
        return sum(isinstance(thing, Tensor) for thing in gc.get_objects())

    opt.step()
    before = tensors()
    for _ in range(5):
        opt.step()
    assert tensors() <= before
