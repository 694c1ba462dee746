"""The command ``zoo race``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from .. import registry
from ..errors import AmbiguousOptimizerError, PluginError, RegistryFileError, UnknownOptimizerError
from ..spec import normalised
from .errors import RaceError
from .tasks import TASKS

__all__ = ["race_command"]

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


def race_command(
    optimizers: Annotated[list[str], typer.Argument(help="Names to race: adam lion sgd.")],
    task: Annotated[str, typer.Option(help=f"What to train: {' or '.join(TASKS.names())}.")] = "digits",
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps each; default: the task's.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of the initial weights and the batches.")] = 0,
    lr: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, may be repeated.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the JSON, the table and the picture.")] = Path("race"),
) -> None:
    """Train the same small network once with each optimizer: a table, JSON, and a picture of the loss curves.

    Equal seeds give equal numbers. Exit code 2: it can't be run as asked. 1: an optimizer raised an error. 130: interrupted.
    """
    try:
        code = _race(optimizers, task, steps, seed, lr or [], out)
    except (RaceError, AmbiguousOptimizerError, PluginError, RegistryFileError, UnknownOptimizerError) as error:
        typer.echo(f"zoo race: {error}", err=True)
        raise typer.Exit(2) from None
    if code:
        raise typer.Exit(code)


def _race(optimizers: Sequence[str], task: str, steps: int | None, seed: int, lr: Sequence[str], out: Path) -> int:
    names = list(dict.fromkeys(_canonical(name) for name in optimizers))
    learning_rates = _learning_rates(lr, names)
    chosen = TASKS.get(task)
    # What can be checked without torch has been, before it is imported.
    from rich.console import Console

    from .picture import check_available
    from .progress import follow
    from .report import save, table
    from .runner import run_race

    check_available()
    _make_folder(out)
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    count = chosen.steps if steps is None else steps
    with follow(console, names, count) as watcher:
        race = run_race(chosen, names, steps=count, seed=seed, learning_rates=learning_rates, watcher=watcher)
    if race.laps:
        console.print(table(race))
        for path in save(race, out):
            console.print(f"written: {path}", highlight=False, markup=False, soft_wrap=True)
    if race.unfinished:
        typer.echo(f"zoo race: interrupted; not finished: {', '.join(race.unfinished)}", err=True)
        return INTERRUPTED
    failed = [lap for lap in race.laps if lap.status == "failed"]
    for lap in failed:
        typer.echo(f"zoo race: {lap.optimizer} failed: {lap.message}", err=True)
    return 1 if failed else 0


def _make_folder(out: Path) -> None:
    """Make the folder before minutes of training, not after them."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RaceError(f"--out {out}: {error.strerror}; choose a folder that can be written to") from None


def _canonical(name: str) -> str:
    """The name as the registry spells it; one that picks a distribution (``distribution:name``) stays as it is."""
    if registry.preset(name) is not None:
        return normalised(name)  # its spec is that of the optimizer that it configures
    spec = registry.optimizer_spec(name)
    return name if ":" in name else spec.name


def _learning_rates(entries: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for entry in entries:
        given, separator, value = entry.partition("=")
        if not separator:
            raise RaceError(f"--lr {entry}: give NAME=VALUE, such as --lr adam=3e-3")
        name = _canonical(given)
        if name not in names:
            raise RaceError(f"--lr {entry}: {name} is not in the race ({', '.join(names)})")
        if name in found:
            raise RaceError(f"--lr {entry}: {name} has a learning rate already, {found[name]:g}")
        try:
            number = float(value)
        except ValueError:
            raise RaceError(
                f"--lr {entry}: {value!r} is not a number; give NAME=VALUE, such as --lr adam=3e-3"
            ) from None
        if not (math.isfinite(number) and number >= 0):
            raise RaceError(f"--lr {entry}: a learning rate is a finite number of 0 or more")
        found[name] = number
    return found
