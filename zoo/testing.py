"""What the zoo tests its own optimizers with, for the authors of plugins.

>>> from zoo.testing import check_optimizer
>>> check_optimizer("my_step", lr=0.1)   # doctest: +SKIP

Each check is a claim; a failed one is reported by its name, with what was seen.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from . import registry
from .optimizer import BaseOptimizer

__all__ = ["CHECKS", "CheckFailure", "Report", "check_optimizer"]

SHAPES: tuple[tuple[int, ...], ...] = ((4, 3), (3,), (2, 3, 2))
ODD_SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (1, 1), (1, 5), (4,), (4, 4), (3, 2, 2, 2))


class CheckFailure(AssertionError):
    """Some checks failed; the message lists them by name."""


@dataclass
class Report:
    """What held and what did not.

    Args:
        optimizer: what was checked.
        passed: names of the checks that held.
        failed: name → what was seen, of those that did not.
    """

    optimizer: str
    passed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{self.optimizer}: {len(self.passed)} checks passed, {len(self.failed)} failed"]
        return "\n".join([*lines, *(f"  {name}: {message}" for name, message in self.failed.items())])


@dataclass(frozen=True)
class _Subject:
    """The optimizer under test, and how to take steps with it."""

    cls: type[BaseOptimizer[Any]]
    options: Mapping[str, Any]

    def make(self, params: Any, **extra: Any) -> Any:
        opt: Any = self.cls(params, **{**self.options, **extra})
        if hasattr(opt, "train"):
            opt.train()
        return opt

    def run(self, opt: Any, params: Sequence[Tensor], seeds: Iterable[int], sign: float = 1.0) -> None:
        for seed in seeds:
            grads = [sign * g for g in _normals([p.shape for p in params], seed, params[0].dtype)]
            self.take(opt, params, grads)

    def take(self, opt: Any, params: Sequence[Tensor], grads: Sequence[Tensor | None]) -> None:
        """One step with these gradients: plain, with a graph, or through a closure, as the optimizer needs."""
        active = [(p, g) for p, g in zip(params, grads, strict=True) if g is not None]

        def evaluate() -> Tensor:
            for p, g in zip(params, grads, strict=True):
                p.grad = None if g is None else g.clone()
            if not (self.cls.needs_closure or self.cls.needs_create_graph):
                return torch.zeros(())
            with torch.enable_grad():
                # A convex loss whose gradient at the present parameters is g.
                terms = [(g * p).sum() + (p - p.detach()).square().sum() for p, g in active]
                loss = torch.stack(terms).sum()
                found = torch.autograd.grad(loss, [p for p, _ in active], create_graph=self.cls.needs_create_graph)
            for (p, _), grad in zip(active, found, strict=True):
                p.grad = grad
            return loss.detach()

        if self.cls.needs_closure:
            opt.step(evaluate)
        else:
            evaluate()
            opt.step()


def _normals(shapes: Iterable[Any], seed: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


def _params(shapes: Sequence[tuple[int, ...]] = SHAPES, dtype: torch.dtype = torch.float32) -> list[Parameter]:
    return [Parameter(value) for value in _normals(shapes, 1000, dtype)]


def _same(a: Iterable[Tensor], b: Iterable[Tensor], what: str) -> None:
    for index, (p, q) in enumerate(zip(a, b, strict=True)):
        if not torch.equal(p, q):
            raise AssertionError(f"{what}: parameter {index} differs by {float((p - q).abs().max()):.3g}")


def _finite(params: Iterable[Tensor]) -> None:
    if not all(bool(torch.isfinite(p).all()) for p in params):
        raise AssertionError("a parameter became NaN or infinite")


def _a_misspelt_option_is_refused(subject: _Subject) -> None:
    try:
        subject.make(_params(), no_such_option=1)
    except ValueError:
        return
    raise AssertionError("no_such_option=1 was accepted")


def _every_option_has_help(subject: _Subject) -> None:
    bare = [name for name, info in subject.cls.Config.model_fields.items() if not info.description]
    if bare:
        raise AssertionError(f"options without a description: {', '.join(bare)}")


def _a_step_moves_parameters_and_leaves_gradients(subject: _Subject) -> None:
    params = _params()
    before = [p.detach().clone() for p in params]
    opt = subject.make(params, engine="loop")  # the engine that hands a rule the caller's own gradient
    grads = _normals(SHAPES, 0)
    for _ in range(8):
        subject.take(opt, params, grads)
    _finite(params)
    if all(torch.equal(p, q) for p, q in zip(params, before, strict=True)):
        raise AssertionError("eight steps moved nothing")
    if not (subject.cls.needs_closure or subject.cls.needs_create_graph):
        _same([p.grad for p in params if p.grad is not None], grads, "the caller's gradient was changed")


def _lr_zero_moves_nothing(subject: _Subject) -> None:
    params = _params()
    before = [p.detach().clone() for p in params]
    subject.run(subject.make(params, lr=0.0), params, range(3))
    _same(params, before, "at lr 0")


def _zero_gradients_stay_finite(subject: _Subject) -> None:
    params = _params()
    opt = subject.make(params)
    subject.take(opt, params, [torch.zeros(shape) for shape in SHAPES])
    subject.run(opt, params, range(2))
    _finite(params)


def _a_parameter_without_gradient_is_left_alone(subject: _Subject) -> None:
    params = _params()
    before = params[1].detach().clone()
    opt = subject.make(params, weight_decay=0.1)
    for seed in range(3):
        grads: list[Tensor | None] = [*_normals(SHAPES, seed)]
        grads[1] = None
        subject.take(opt, params, grads)
    _same([params[1]], [before], "without a gradient")


def _engines_agree(subject: _Subject) -> None:
    results = {}
    for engine in ("loop", "blocked", "foreach"):
        params = _params(dtype=torch.float64)
        subject.run(subject.make(params, engine=engine, weight_decay=0.01), params, range(5))
        results[engine] = params
    for engine in ("blocked", "foreach"):
        for index, (p, q) in enumerate(zip(results[engine], results["loop"], strict=True)):
            error = float((p - q).abs().max())
            if not error <= 1e-9 * (1 + float(q.abs().max())):
                raise AssertionError(f"{engine} differs from loop by {error:.3g} at parameter {index}")


def _saved_and_loaded_is_never_stopped(subject: _Subject) -> None:
    params = _params()
    opt = subject.make(params)
    subject.run(opt, params, range(3))
    buffer = io.BytesIO()
    torch.save(opt.state_dict(), buffer)
    buffer.seek(0)
    others = [Parameter(p.detach().clone()) for p in params]
    resumed = subject.make(others)
    resumed.load_state_dict(torch.load(buffer, weights_only=True))
    subject.run(opt, params, [7, 8])
    subject.run(resumed, others, [7, 8])
    _same(others, params, "after loading a checkpoint")


def _copies_continue(subject: _Subject) -> None:
    copies: dict[str, Callable[[Any], Any]] = {
        "deepcopy": copy.deepcopy,
        "pickle": lambda opt: pickle.loads(pickle.dumps(opt)),
    }
    for how, duplicate in copies.items():
        params = _params()
        opt = subject.make(params)
        subject.run(opt, params, range(2))
        twin = duplicate(opt)
        others = [p for group in twin.param_groups for p in group["params"]]
        subject.run(opt, params, [7, 8])
        subject.run(twin, others, [7, 8])
        _same(others, params, f"after {how}")


def _shapes_of_every_kind_train(subject: _Subject) -> None:
    for shape in ODD_SHAPES:
        params = _params([shape])
        opt = subject.make(params)
        subject.run(opt, params, range(3))
        _finite(params)
    params = _params([(0,), (2, 2), (0, 3)])
    subject.run(subject.make(params), params, range(2))
    _finite(params)


def _low_and_high_precision_train(subject: _Subject) -> None:
    for dtype in (torch.bfloat16, torch.float64):
        params = _params(dtype=dtype)
        opt = subject.make(params)
        subject.run(opt, params, range(3))
        _finite(params)
        if any(p.dtype is not dtype for p in params):
            raise AssertionError(f"a parameter is no longer of {dtype}")


def _a_group_may_join_later(subject: _Subject) -> None:
    params = _params()
    opt = subject.make(params[:1])
    subject.run(opt, params[:1], range(2))
    before = params[1].detach().clone()
    opt.add_param_group({"params": params[1:]})
    subject.run(opt, params, range(8))
    _finite(params)
    if torch.equal(params[1], before):
        raise AssertionError("the parameter that joined never moved")


def _maximize_is_a_mirror(subject: _Subject) -> None:
    params, others = _params(), _params()
    subject.run(subject.make(params), params, range(4))
    subject.run(subject.make(others, maximize=True), others, range(4), sign=-1.0)
    _same(others, params, "maximizing along −g")


def _least_squares_are_solved(subject: _Subject) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 6, generator=generator)
    y = x @ torch.ones(6, 2)
    weight = Parameter(torch.zeros(2, 6))
    opt = subject.make([weight], weight_decay=0.0)

    def loss() -> Tensor:
        return (torch.nn.functional.linear(x, weight) - y).square().mean()

    def evaluate() -> Tensor:
        opt.zero_grad()
        value = loss()
        value.backward(create_graph=subject.cls.needs_create_graph)
        return value.detach()

    before = float(loss())
    for _ in range(200):
        if subject.cls.needs_closure:
            opt.step(evaluate)
        else:
            evaluate()
            opt.step()
    if hasattr(opt, "eval"):
        opt.eval()
    after = float(loss())
    if not after < 0.5 * before:
        raise AssertionError(f"200 steps took the loss from {before:.3g} to {after:.3g}; is lr right for it?")


CHECKS: dict[str, Callable[[_Subject], None]] = {
    check.__name__.removeprefix("_"): check
    for check in (
        _a_misspelt_option_is_refused,
        _every_option_has_help,
        _a_step_moves_parameters_and_leaves_gradients,
        _lr_zero_moves_nothing,
        _zero_gradients_stay_finite,
        _a_parameter_without_gradient_is_left_alone,
        _engines_agree,
        _saved_and_loaded_is_never_stopped,
        _copies_continue,
        _shapes_of_every_kind_train,
        _low_and_high_precision_train,
        _a_group_may_join_later,
        _maximize_is_a_mirror,
        _least_squares_are_solved,
    )
}
"""Every check by name."""


def check_optimizer(
    optimizer: str | type[BaseOptimizer[Any]],
    *,
    options: Mapping[str, Any] | None = None,
    lr: float | None = None,
    skip: Iterable[str] = (),
    raises: bool = True,
) -> Report:
    """Check an optimizer's life cycle, engines, checkpoints, shapes, dtypes and that it learns.

    Args:
        optimizer: a registered name, or a class.
        options: options for every check.
        lr: a learning rate with which 200 steps solve a small least-squares problem; default: the optimizer's own.
        skip: names of checks to leave out (see ``CHECKS``); say why where you do.
        raises: raise on a failure; with False, only report it.

    Raises:
        CheckFailure: some checks failed; the message lists them by name.
        ValueError: ``skip`` names no check.
    """
    unknown = sorted(set(skip) - CHECKS.keys())
    if unknown:
        raise ValueError(f"no checks are called {', '.join(unknown)}; checks: {', '.join(CHECKS)}")
    cls = registry.optimizer_class(optimizer) if isinstance(optimizer, str) else optimizer
    subject = _Subject(cls, {**(options or {}), **({} if lr is None else {"lr": lr})})
    report = Report(optimizer if isinstance(optimizer, str) else cls.__name__)
    for name, check in CHECKS.items():
        if name in skip:
            continue
        try:
            check(subject)
        except Exception as error:
            report.failed[name] = f"{type(error).__name__}: {error}"
        else:
            report.passed.append(name)
    if report.failed and raises:
        raise CheckFailure(str(report))
    return report
