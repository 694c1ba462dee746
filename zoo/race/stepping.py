"""Building and stepping an optimizer, whatever it asks of the training loop."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from .. import registry
from .learning_rates import OPTIONS

__all__ = ["StepResult", "build_optimizer", "evaluation_weights", "state_bytes", "train_mode_", "training_step"]


def build_optimizer(name: str, model: nn.Module, lr: float | None) -> torch.optim.Optimizer:
    """The registry's optimizer of this name with the options of a race; ``lr=None`` means its own default."""
    options = dict(OPTIONS.get(name, {}))
    if lr is not None:
        options["lr"] = lr
    return registry.create_optimizer(name, model, **options)


@dataclass(frozen=True)
class StepResult:
    """One training step.

    Args:
        loss: before the step.
        seconds: of the whole step: forward, backward and optimizer.
        optimizer_seconds: of the optimizer alone, without the passes that its closure made.
    """

    loss: float
    seconds: float
    optimizer_seconds: float


def training_step(opt: torch.optim.Optimizer, loss_of: Callable[[], Tensor]) -> StepResult:
    """Take one step on the loss that ``loss_of`` computes, as the optimizer wants it taken.

    ``opt.needs_closure`` means that it calls the loss itself, ``opt.needs_create_graph`` that it differentiates the
    gradient; optimizers that have neither attribute get a plain backward and step.
    """
    create_graph = bool(getattr(opt, "needs_create_graph", False))
    losses: list[float] = []
    passes = 0.0

    def closure() -> Tensor:
        nonlocal passes
        started = time.perf_counter()
        # An optimizer may call its closure without autograd around it.
        with torch.enable_grad():
            opt.zero_grad()
            with sdpa_kernel(SDPBackend.MATH) if create_graph else nullcontext():  # others have no second derivative
                loss = loss_of()
                _backward(loss, create_graph)
        losses.append(loss.item())
        passes += time.perf_counter() - started
        return loss.detach()

    started = time.perf_counter()
    if getattr(opt, "needs_closure", False):
        # The stubs of torch 2.6 and of later ones differ in what a closure returns.
        opt.step(cast(Any, closure))
    else:
        closure()
        opt.step()
    seconds = time.perf_counter() - started
    return StepResult(losses[0], seconds, seconds - passes)


def _backward(loss: Tensor, create_graph: bool) -> None:
    if not create_graph:
        loss.backward()
        return
    with warnings.catch_warnings():
        # torch warns of the cycle between parameter and gradient; zero_grad breaks it at the next step.
        warnings.filterwarnings("ignore", message=".*create_graph=True.*")
        loss.backward(create_graph=True)


def train_mode_(opt: torch.optim.Optimizer) -> None:
    """Switch an optimizer that has two modes to the weights that training steps change."""
    train = getattr(opt, "train", None)
    if callable(train):
        train()


@contextmanager
def evaluation_weights(model: nn.Module, opt: torch.optim.Optimizer) -> Iterator[None]:
    """The module in eval mode, with the weights that the optimizer wants judged; both in train mode again afterwards."""
    evaluate = getattr(opt, "eval", None)
    if callable(evaluate):
        evaluate()
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train()
        train_mode_(opt)


def state_bytes(opt: torch.optim.Optimizer) -> int:
    """Bytes of all tensors in the optimizer's state, however deep; a tensor that occurs twice counts once."""
    tensors: dict[int, Tensor] = {}

    def collect(value: Any) -> None:
        if isinstance(value, Tensor):
            tensors[id(value)] = value
        elif isinstance(value, dict):
            for entry in value.values():
                collect(entry)
        elif isinstance(value, (list, tuple)):
            for entry in value:
                collect(entry)

    collect(dict(opt.state))
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
