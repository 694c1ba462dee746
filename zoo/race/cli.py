"""The command ``zoo race``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .. import registry

__all__ = ["race_command"]


def race_command(
    optimizers: Annotated[list[str], typer.Argument(help="Names to race: adam lion sgd.")],
    task: Annotated[str, typer.Option(help="What to train: digits or source.")] = "digits",
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps each; default: the task's.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the initial weights and the batches.")] = 0,
    lr: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, may be repeated.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the JSON, the table and the picture.")] = Path("race"),
) -> None:
    """Train the same small network once with each optimizer; table, JSON and picture of the loss curves."""
    names = list(dict.fromkeys(registry.optimizer_spec(name).name for name in optimizers))
    learning_rates = dict(_learning_rate(entry, names) for entry in lr or [])
    # Everything above is checked before torch is imported.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from .report import save, table
    from .runner import Lap, run_race
    from .tasks import TASKS, RaceError

    if task not in TASKS:
        raise typer.BadParameter(f"unknown task {task!r}; tasks: {', '.join(TASKS)}")
    chosen = TASKS[task]
    count = steps or chosen.steps
    terminal = sys.stdout.isatty()
    console = Console() if terminal else Console(width=120)
    columns = (TextColumn("{task.description:20}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("loss {task.fields[loss]}"), console=console, disable=not terminal) as progress:
        bars = {name: progress.add_task(name, total=count, loss="", start=False) for name in names}

        def report(lap: Lap, step: int) -> None:
            progress.start_task(bars[lap.optimizer])
            progress.update(bars[lap.optimizer], completed=step, loss=f"{lap.losses[-1]:.4f}")
            if not terminal and (step == count or lap.diverged):
                console.print(f"{lap.optimizer}: step {step}, loss {lap.losses[-1]:.4f}", highlight=False)

        try:
            laps = run_race(chosen, names, steps=count, seed=seed, learning_rates=learning_rates, report=report)
        except RaceError as error:
            typer.echo(f"zoo race: {error}", err=True)
            raise typer.Exit(2) from None
    console.print(table(chosen, laps))
    for path in save(chosen, laps, steps=count, seed=seed, folder=out):
        console.print(f"written: {path}", highlight=False)


def _learning_rate(entry: str, names: list[str]) -> tuple[str, float]:
    name, _, value = entry.partition("=")
    name = registry.optimizer_spec(name).name
    if name not in names:
        raise typer.BadParameter(f"--lr {entry}: {name} is not in the race ({', '.join(names)})")
    try:
        number = float(value)
    except ValueError:
        raise typer.BadParameter(f"--lr {entry}: give NAME=VALUE, such as adam=3e-3") from None
    if not 0 <= number < float("inf"):
        raise typer.BadParameter(f"--lr {entry}: the learning rate must be a number of 0 or more")
    return name, number
