"""Training one network once with each optimizer: same weights, same batches, same numbers every time."""

from __future__ import annotations

import copy
import math
import statistics
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from .errors import RaceError
from .isolation import isolated
from .learning_rates import OPTIONS
from .stepping import StepResult, build_optimizer, evaluation_weights, state_bytes, train_mode_, training_step
from .tasks import Evaluation, Problem, RaceTask

__all__ = ["EVALUATIONS", "Lap", "LearningRateSource", "Race", "Watcher", "run_race"]

EVALUATIONS = 20
"""How often an optimizer is judged on the held-out data, beside once before the first step."""
FEWEST_STEPS_BETWEEN = 4
"""Steps between two evaluations of a short race, which would spend its time on them otherwise."""

LearningRateSource = Literal["given", "tuned", "default"]
Status = Literal["running", "finished", "diverged", "failed"]


@dataclass
class Lap:
    """What one optimizer did.

    Args:
        optimizer: its name.
        lr: its learning rate.
        lr_source: who chose it: the caller, the task, or the optimizer's own default.
        options: other options that the race sets.
        losses: training loss of each step, before it.
        held_out: (step, evaluation) pairs; step 0 is before the first.
        status: "diverged" where a loss was not finite, "failed" where the optimizer raised an error.
        message: that error.
        state_bytes: of the optimizer's state after the last step.
        steps: what the steps took.
        seconds: of the whole lap, evaluations included.
    """

    optimizer: str
    lr: float
    lr_source: LearningRateSource
    options: Mapping[str, Any] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    held_out: list[tuple[int, Evaluation]] = field(default_factory=list)
    status: Status = "running"
    message: str = ""
    state_bytes: int = 0
    steps: list[StepResult] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def train_loss(self) -> float:
        """Mean of the last tenth of the training losses (one batch alone is noise); nan unless finished."""
        if self.status != "finished":
            return math.nan
        tail = self.losses[-max(1, len(self.losses) // 10) :]
        return sum(tail) / len(tail)

    @property
    def result(self) -> Evaluation:
        """The last evaluation; nan unless finished."""
        return self.held_out[-1][1] if self.status == "finished" else Evaluation(math.nan, math.nan)

    @property
    def last_step(self) -> int:
        """The step it stopped at, one that failed included."""
        return len(self.losses) + (self.status == "failed")

    @property
    def step_seconds(self) -> float:
        """Median seconds a step: forward, backward, optimizer."""
        return statistics.median(step.seconds for step in self.steps) if self.steps else math.nan

    @property
    def optimizer_seconds(self) -> float:
        """Median seconds that the optimizer took of a step."""
        return statistics.median(step.optimizer_seconds for step in self.steps) if self.steps else math.nan


@dataclass
class Race:
    """What became of a race.

    Args:
        task: what was trained.
        steps: training steps of each optimizer.
        seed: of weights and batches.
        parameters: number of the network's parameters.
        data: the task's description of its data.
        laps: of the optimizers that came to an end, in the order of the race.
        unfinished: optimizers that an interrupt (Ctrl-C) kept from it.
    """

    task: RaceTask
    steps: int
    seed: int
    parameters: int
    data: Mapping[str, int | str]
    laps: list[Lap] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)

    def ranked(self) -> list[Lap]:
        """The laps, best held-out loss first, those that did not finish last."""
        return sorted(self.laps, key=lambda lap: lap.result.loss if lap.status == "finished" else math.inf)


class Watcher(Protocol):
    """Whoever follows a race, such as a progress display."""

    def stepped(self, lap: Lap) -> None:
        """A step was taken."""

    def ended(self, lap: Lap) -> None:
        """The lap is over."""


class _Nobody:
    def stepped(self, lap: Lap) -> None:
        """Nobody watches."""

    def ended(self, lap: Lap) -> None:
        """Nobody watches."""


def run_race(
    task: RaceTask,
    optimizers: Sequence[str],
    *,
    steps: int,
    seed: int = 0,
    learning_rates: Mapping[str, float] | None = None,
    watcher: Watcher | None = None,
) -> Race:
    """Train the task's network with each optimizer in turn.

    An optimizer's numbers depend on the task, the seed and its own options, not on who else races. The caller's
    random numbers are left alone. An interrupt ends the race; what was finished is returned.

    Args:
        task: what to train.
        optimizers: names of the registry.
        steps: training steps each.
        seed: of the initial weights and the batches.
        learning_rates: by name; then the task's, then the optimizer's own default.
        watcher: told of every step.

    Raises:
        RaceError: the task has no data here, or an optimizer can't be built; nothing was trained then.
    """
    with isolated(seed):
        problem = task.build(seed)
    parameters = sum(p.numel() for p in problem.model.parameters())
    race = Race(task, steps, seed, parameters, dict(problem.data))
    laps = [_lap(task, problem, name, learning_rates or {}) for name in optimizers]
    watcher = watcher or _Nobody()
    try:
        for lap in laps:
            with isolated(seed):
                _run(lap, problem, steps, watcher)
            race.laps.append(lap)
            watcher.ended(lap)
    except KeyboardInterrupt:
        done = [lap.optimizer for lap in race.laps]
        race.unfinished = [name for name in optimizers if name not in done]
    return race


def _lap(task: RaceTask, problem: Problem, name: str, given: Mapping[str, float]) -> Lap:
    """A lap about to start; builds the optimizer once, so that a wrong option shows before anything is trained."""
    source: LearningRateSource = "given" if name in given else "tuned" if name in task.learning_rates else "default"
    lr = given.get(name, task.learning_rates.get(name))
    try:
        with isolated(0):
            opt = build_optimizer(name, copy.deepcopy(problem.model), lr)
    except (ValueError, TypeError, RuntimeError) as error:
        raise RaceError(f"{name} can't race on {task.name}: {error}") from error
    return Lap(name, float(opt.param_groups[0]["lr"]), source, OPTIONS.get(name, {}))


def _run(lap: Lap, problem: Problem, steps: int, watcher: Watcher) -> None:
    started = time.perf_counter()
    training = _train(lap, problem, steps)
    while lap.status == "running":
        try:
            next(training)
        except Exception as error:  # one optimizer's fault is no reason to lose the others' results
            lap.status, lap.message = "failed", f"{type(error).__name__}: {error}"
        else:
            watcher.stepped(lap)
    training.close()
    lap.seconds = time.perf_counter() - started


def _train(lap: Lap, problem: Problem, steps: int) -> Generator[None, None, None]:
    """Take the lap's steps, one an iteration; the last sets its status."""
    model = copy.deepcopy(problem.model)
    model.train()
    opt = build_optimizer(lap.optimizer, model, None if lap.lr_source == "default" else lap.lr)
    train_mode_(opt)
    batches = problem.batches()
    every = max(FEWEST_STEPS_BETWEEN, steps // EVALUATIONS)

    def finite_when_evaluated(step: int) -> bool:
        with evaluation_weights(model, opt):
            evaluation = problem.evaluate(model)
        lap.held_out.append((step, evaluation))
        return math.isfinite(evaluation.loss)

    finite_when_evaluated(0)
    for step in range(1, steps + 1):
        batch = next(batches)
        result = training_step(opt, lambda batch=batch: problem.loss(model, batch))  # type: ignore[misc]
        lap.losses.append(result.loss)
        lap.steps.append(result)
        lap.state_bytes = state_bytes(opt) if step == 1 or step == steps else lap.state_bytes
        judged = step % every == 0 or step == steps
        if not math.isfinite(result.loss) or (judged and not finite_when_evaluated(step)):
            lap.status = "diverged"
        elif step == steps:
            lap.status = "finished"
        if step == steps or lap.status == "diverged":
            # The last gradients may hold a graph that holds them.
            opt.zero_grad()
        yield
