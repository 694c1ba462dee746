"""What the life-cycle tests share: tiny parameters, gradients by seed, and steps that any optimizer can take."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import Parameter

import zoo
from zoo import engines

NAMES = zoo.list_optimizers()
every_optimizer = pytest.mark.parametrize("name", NAMES)

SHAPES: tuple[tuple[int, ...], ...] = ((4, 3), (3,), (2, 3, 2))

ENGINES = tuple(name for name in ("loop", "blocked", "foreach") if name in engines._ENGINES)
"""Engines that start at once; the compiled one has slow tests of its own."""

REQUIRED: dict[str, dict[str, Any]] = {
    "adashift": {"keep_num": 1},  # it moves nothing before it has kept ten gradients
    "schedule_free_radam": {"silent_sgd_phase": False},  # it takes no steps at first by default: nothing to look at
}
"""Options without a default, or whose default hides what a test looks at, by optimizer."""

LR_ESTIMATED = dict.fromkeys(zoo.list_optimizers(tag="parameter-free"), "it estimates its own learning rate")
"""Optimizers whose step does not follow ``lr``."""


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def P(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Parameter:
    """A parameter of normal numbers."""
    return Parameter(torch.randn(shape, generator=_generator(1000 + seed), dtype=dtype))


def params_of(shapes: Iterable[tuple[int, ...]] = SHAPES, dtype: torch.dtype = torch.float32) -> list[Parameter]:
    """One parameter a shape."""
    return [P(*shape, seed=index, dtype=dtype) for index, shape in enumerate(shapes)]


def twin(params: Iterable[Parameter] | Iterable[Tensor]) -> list[Parameter]:
    """Parameters of the same values and strides, and of no common memory; as frozen as the originals."""

    def trainable(p: Tensor) -> bool:
        return p.requires_grad or not isinstance(p, Parameter)

    return [Parameter(p.detach().clone(), requires_grad=trainable(p)) for p in params]


def make(name: str, params: Any, **cfg: Any) -> Any:
    """The optimizer of this name in training mode, with what it requires."""
    opt = zoo.create_optimizer(name, params, **{**REQUIRED.get(name, {}), **cfg})
    train(opt)
    return opt


def train(opt: Any) -> None:
    """Switch an optimizer with two modes to training."""
    if hasattr(opt, "train"):
        opt.train()


def own_params(opt: torch.optim.Optimizer) -> list[Any]:
    """The optimizer's parameters, in order."""
    return [p for group in opt.param_groups for p in group["params"]]


def has_option(name: str, option: str) -> bool:
    """Whether this optimizer has this option."""
    return option in zoo.optimizer_config(name).model_fields


def refuses(name: str, **cfg: Any) -> bool:
    """Whether this optimizer refuses these options at construction (with an error of the right kind)."""
    try:
        make(name, [P(2, 2)], **cfg)
    except ValueError:
        return True
    return False


def lively_lr(name: str) -> float:
    """A learning rate at which a few steps show: the default, but no less than 0.01."""
    return max(zoo.optimizer_config(name).model_fields["lr"].default or 0.0, 0.01)


def random_grads(params: Sequence[Tensor], seed: int, scale: float = 1.0) -> list[Tensor]:
    """Normal gradients; the global generator is not touched."""
    generator = _generator(seed)
    return [torch.randn(p.shape, generator=generator, dtype=p.dtype) * scale for p in params]


def fill(params: Sequence[Tensor], seed: int = 0, scale: float = 1.0) -> None:
    """Give every parameter a normal gradient."""
    for p, g in zip(params, random_grads(params, seed, scale), strict=True):
        p.grad = g


def quadratic(params: Sequence[Tensor], grads: Sequence[Tensor]) -> Callable[[], Tensor]:
    """A loss whose gradient here is ``grads`` and whose Hessian is diagonal, between 0.5 and 1.5."""
    start = [p.detach().clone() for p in params]

    def loss() -> Tensor:
        total = torch.zeros(())
        for p, at, g in zip(params, start, grads, strict=True):
            moved, slope = (p - at, g) if not p.is_complex() else map(torch.view_as_real, (p - at, g))
            curvature = torch.linspace(0.5, 1.5, moved.numel(), dtype=moved.dtype).reshape(moved.shape)
            total = total + (moved * slope + curvature * moved**2 / 2).sum()
        return total

    return loss


def give_grads(opt: Any, params: Sequence[Tensor], grads: Sequence[Tensor | None]) -> Callable[[], Tensor] | None:
    """Set the gradients, with their graph where the optimizer needs it; returns a closure where it needs one."""
    for p, g in zip(params, grads, strict=True):
        p.grad = None if g is None else g.clone(memory_format=torch.preserve_format)
    needs_closure, needs_graph = getattr(opt, "needs_closure", False), getattr(opt, "needs_create_graph", False)
    if not needs_closure and not needs_graph:
        return None
    active = [(p, g) for p, g in zip(params, grads, strict=True) if g is not None and p.requires_grad]
    loss = quadratic([p for p, _ in active], [g for _, g in active])

    def closure() -> Tensor:
        with torch.enable_grad():
            value = loss()
            if active:
                found = torch.autograd.grad(value, [p for p, _ in active], create_graph=needs_graph)
                for (p, _), g in zip(active, found, strict=True):
                    p.grad = g
        return value.detach()

    if needs_closure:
        return closure
    closure()
    return None


def take_step(opt: Any, params: Sequence[Tensor], grads: Sequence[Tensor | None]) -> None:
    """One step with these gradients (None: without), through whatever door the optimizer needs."""
    closure = give_grads(opt, params, grads)
    if closure is None:
        opt.step()
    else:
        opt.step(closure)


def run(opt: Any, params: Sequence[Tensor], seeds: Iterable[int], scale: float = 1.0) -> None:
    """One step a seed."""
    for seed in seeds:
        take_step(opt, params, random_grads(params, seed, scale))


def save_load(state_dict: Any, *, weights_only: bool = True) -> Any:
    """The state dict through a file in memory."""
    buffer = io.BytesIO()
    torch.save(state_dict, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=weights_only)


def values(params: Iterable[Tensor]) -> list[Tensor]:
    """Copies of the parameters' values."""
    return [p.detach().clone() for p in params]


def moves(params: Sequence[Tensor], before: Sequence[Tensor]) -> list[Tensor]:
    """How far the parameters are from where they were."""
    return [p.detach() - old for p, old in zip(params, before, strict=True)]


def assert_same(ours: Iterable[Tensor], theirs: Iterable[Tensor], what: str = "parameter") -> None:
    """Equal dtypes, shapes and bits."""
    for index, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert a.dtype == b.dtype, f"{what} {index}: {a.dtype} and {b.dtype}"
        assert torch.equal(a.detach(), b.detach()), f"{what} {index}: {a.detach()} and {b.detach()}"


def assert_close(ours: Iterable[Tensor], theirs: Iterable[Tensor], rtol: float = 1e-5, what: str = "parameter") -> None:
    """Equal up to ``rtol`` of the largest element."""
    for index, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if a.numel():
            scale = float(b.detach().abs().max()) + 1e-12
            error = float((a.detach() - b.detach()).abs().max()) / scale
            assert error <= rtol, f"{what} {index}: relative error {error:.2e}"


def assert_finite(params: Iterable[Tensor], what: str = "") -> None:
    """No NaN, no infinity."""
    for index, p in enumerate(params):
        assert bool(torch.isfinite(p.detach()).all()), f"parameter {index} is not finite {what}: {p.detach()}"


def group_values(opt: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """What the groups hold beside parameters."""
    return [{k: v for k, v in group.items() if k not in ("params", "param_names")} for group in opt.param_groups]


def assert_same_value(a: Any, b: Any, what: str) -> None:
    """Equal type and value, tensors by bits."""
    assert type(a) is type(b), f"{what}: {a!r} and {b!r}"
    if isinstance(a, Tensor):
        assert_same([a], [b], what)
    else:
        assert a == b, f"{what}: {a!r} and {b!r}"


def assert_same_state(ours: torch.optim.Optimizer, theirs: torch.optim.Optimizer) -> None:
    """The same state keys, dtypes and bits for every parameter, and the same values in every group."""
    for index, (p, q) in enumerate(zip(own_params(ours), own_params(theirs), strict=True)):
        a: Mapping[str, Any] = ours.state.get(p, {})
        b: Mapping[str, Any] = theirs.state.get(q, {})
        assert set(a) == set(b), f"state of parameter {index}: {sorted(a)} and {sorted(b)}"
        for key in a:
            assert_same_value(a[key], b[key], f"state {key!r} of parameter {index}")
    for index, (g, h) in enumerate(zip(group_values(ours), group_values(theirs), strict=True)):
        assert set(g) == set(h)
        for key in g:
            assert_same_value(g[key], h[key], f"param_groups[{index}].{key}")
