"""How the table of learning rates was made: ``python -m zoo.race.tuning digits sgd adam`` tunes and prints its lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from .. import registry
from .tasks import TASKS, RaceTask

__all__ = ["GRID", "SEEDS", "climb", "tune"]

GRID = tuple(float(f"{digit}e{power}") for power in range(-6, 2) for digit in (1, 3))
"""Two learning rates a decade, 1e-6 to 30."""
SEEDS = (1, 2, 3)
"""Not the seed that races have by default."""


def climb(loss_of: Callable[[float], float], start: float) -> tuple[float, float]:
    """Walk from ``start``'s neighbour on the grid to where the loss is lower on neither side: (learning rate, loss)."""
    losses: dict[int, float] = {}

    def loss(index: int) -> float:
        if not 0 <= index < len(GRID):
            return math.inf
        if index not in losses:
            losses[index] = loss_of(GRID[index])
        return losses[index]

    best = min(range(len(GRID)), key=lambda index: abs(math.log(GRID[index] / start)))
    while True:
        nearest = min((best, best + 1, best - 1), key=loss)
        if nearest == best:
            return GRID[best], loss(best)
        best = nearest


def tune(task: RaceTask, name: str, steps: int, seeds: Sequence[int] = SEEDS) -> tuple[float, float, float]:
    """The learning rate with the lowest held-out loss, that loss, and the loss at the optimizer's own default.

    The loss is the mean of the last quarter of the evaluations in races of ``steps`` with each of ``seeds``: the last
    evaluation of one race is too noisy to tune by. A learning rate that diverges or fails counts as infinitely bad.
    """
    from .runner import run_race

    def loss_of(lr: float) -> float:
        losses: list[float] = []
        for seed in seeds:
            (lap,) = run_race(task, [name], steps=steps, seed=seed, learning_rates={name: lr}).laps
            if lap.status != "finished":
                return math.inf
            late = lap.held_out[-max(1, len(lap.held_out) // 4) :]
            losses.append(sum(evaluation.loss for _, evaluation in late) / len(late))
        return sum(losses) / len(losses)

    default = float(registry.optimizer_config(name).model_fields["lr"].default)
    lr, loss = climb(loss_of, default)
    return lr, loss, loss_of(default)


def _main(
    task: Annotated[str, typer.Argument()],
    optimizers: Annotated[list[str], typer.Argument()],
    steps: Annotated[int | None, typer.Option(min=1)] = None,
    seeds: Annotated[int, typer.Option(min=1)] = len(SEEDS),
) -> None:
    chosen = TASKS.get(task)
    for name in optimizers:
        found = tune(chosen, name, chosen.steps if steps is None else steps, range(1, seeds + 1))
        typer.echo(f'    "{name}": {found[0]:g},  # held-out loss {found[1]:.4f}; {found[2]:.4f} at its own default')


if __name__ == "__main__":
    typer.run(_main)
