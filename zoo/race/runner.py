"""Training one network once with each optimizer: same weights, same batches, same numbers every time."""

from __future__ import annotations

import copy
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from .. import registry
from .tasks import RaceTask

__all__ = ["Lap", "run_race"]

OPTIONS: Mapping[str, Mapping[str, Any]] = {"sgd": {"momentum": 0.9}}
"""What an optimizer gets in a race beside its learning rate: SGD is raced as everybody uses it, with momentum."""


@dataclass
class Lap:
    """What one optimizer did."""

    optimizer: str
    lr: float
    losses: list[float] = field(default_factory=list)
    held_out: list[tuple[int, float]] = field(default_factory=list)
    held_out_accuracy: float = float("nan")
    step_seconds: float = float("nan")
    state_bytes: int = 0
    diverged: bool = False

    @property
    def train_loss(self) -> float:
        """Mean of the last tenth of the training losses."""
        tail = self.losses[-max(1, len(self.losses) // 10) :]
        return sum(tail) / len(tail) if tail else float("nan")


@contextmanager
def _own_random_numbers(seed: int) -> Iterator[None]:
    """Seed torch for what happens inside, and give the caller's state back."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def run_race(
    task: RaceTask,
    optimizers: Sequence[str],
    *,
    steps: int,
    seed: int,
    learning_rates: Mapping[str, float],
    report: Callable[[Lap, int], None] = lambda lap, step: None,
) -> list[Lap]:
    """Train the task's network with each optimizer in turn.

    Args:
        task: what to train.
        optimizers: names of the registry.
        steps: training steps each.
        seed: of the initial weights and the batches; equal seeds give equal numbers.
        learning_rates: by name; then the task's, then the optimizer's own default.
        report: called after every step, for a progress display.
    """
    data = task.data()
    with _own_random_numbers(seed):
        start = task.model()
        laps = []
        for name in optimizers:
            model = copy.deepcopy(start)
            lr = learning_rates.get(name, task.learning_rates.get(name))
            options = dict(OPTIONS.get(name, {}))
            opt: Any = registry.create_optimizer(name, model, **options, **({} if lr is None else {"lr": lr}))
            lap = Lap(name, float(opt.param_groups[0]["lr"]))
            laps.append(lap)
            _train(task, model, opt, data, lap, steps, seed, report)
    return laps


def _train(
    task: RaceTask,
    model: nn.Module,
    opt: Any,
    data: tuple[Tensor, Tensor, Tensor, Tensor],
    lap: Lap,
    steps: int,
    seed: int,
    report: Callable[[Lap, int], None],
) -> None:
    inputs, targets, held_inputs, held_targets = data
    generator = torch.Generator().manual_seed(seed)
    seconds = []
    every = max(1, steps // 20)
    for step in range(1, steps + 1):
        x, y = task.batch(inputs, targets, generator)
        loss, took = _step(task, model, opt, x, y)
        seconds.append(took)
        lap.losses.append(loss)
        if not math.isfinite(loss):
            lap.diverged = True
        if step % every == 0 or step == steps or lap.diverged:
            with averaged(opt):
                held_out, lap.held_out_accuracy = task.evaluate(model, held_inputs, held_targets)
            lap.held_out.append((step, held_out))
        report(lap, step)
        if lap.diverged:
            break
    lap.step_seconds = statistics.median(seconds)
    lap.state_bytes = sum(
        tensor.numel() * tensor.element_size()
        for state in opt.state.values()
        for tensor in state.values()
        if isinstance(tensor, Tensor)
    )


def _step(task: RaceTask, model: nn.Module, opt: Any, x: Tensor, y: Tensor) -> tuple[float, float]:
    """One training step: (loss before it, seconds that the optimizer took)."""
    needs_closure = getattr(opt, "needs_closure", False)
    create_graph = getattr(opt, "needs_create_graph", False)

    def evaluate() -> Tensor:
        opt.zero_grad()
        loss = task.loss(model, x, y)
        loss.backward(create_graph=create_graph)
        return loss.detach()

    if needs_closure:
        started = time.perf_counter()
        loss = float(opt.step(evaluate))
        return loss, time.perf_counter() - started
    loss = float(evaluate())
    started = time.perf_counter()
    if math.isfinite(loss):
        opt.step()
    return loss, time.perf_counter() - started


@contextmanager
def averaged(opt: Any) -> Iterator[None]:
    """The weights to evaluate: for optimizers with two modes, those of eval mode."""
    if not hasattr(opt, "eval"):
        yield
        return
    opt.eval()
    try:
        yield
    finally:
        opt.train()
