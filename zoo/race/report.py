"""The result of a race as a table, as JSON and as Markdown."""

from __future__ import annotations

import json
import math
import os
import platform
from pathlib import Path
from typing import Any, TypedDict

from rich.table import Table

from .picture import draw
from .runner import Lap, Race

__all__ = ["LapRecord", "RaceRecord", "markdown", "record", "save", "table"]

FORMAT = 1
"""Of the JSON: raised when a field changes its meaning."""

COLUMNS = (
    "optimizer",
    "lr",
    "train loss",
    "held-out loss",
    "held-out accuracy",
    "seconds a step",
    "of it optimizer",
    "state MB",
)


class HeldOutRecord(TypedDict):
    """The network judged after ``step`` steps; null where a number was not finite."""

    step: int
    loss: float | None
    accuracy: float | None


class TimesRecord(TypedDict):
    """The only fields that differ between equal races: median seconds of a step and of the optimizer's part, and the sum."""

    step_seconds: float | None
    optimizer_seconds: float | None
    total_seconds: float


class LapRecord(TypedDict):
    """One optimizer; see :class:`~zoo.race.runner.Lap`."""

    optimizer: str
    options: dict[str, Any]
    lr: float
    lr_source: str
    status: str
    message: str
    train_loss: float | None
    held_out_loss: float | None
    held_out_accuracy: float | None
    state_bytes: int
    train_losses: list[float | None]
    held_out: list[HeldOutRecord]
    times: TimesRecord


class RaceRecord(TypedDict):
    """The JSON file: equal for equal races, but for ``times``."""

    format: int
    task: str
    summary: str
    steps: int
    seed: int
    parameters: int
    data: dict[str, int | str]
    environment: dict[str, int | str]
    laps: list[LapRecord]
    unfinished: list[str]


def _seconds(value: float) -> str:
    return f"{value:.5f}" if math.isfinite(value) else ""


def _cells(lap: Lap) -> list[str]:
    options = "".join(f", {name} {value}" for name, value in lap.options.items())
    numbers = [f"{lap.train_loss:.4f}", f"{lap.result.loss:.4f}", f"{lap.result.accuracy:.1%}"]
    if lap.status != "finished":
        numbers = [lap.status, f"at step {lap.last_step}", ""]
    cost = [_seconds(lap.step_seconds), _seconds(lap.optimizer_seconds), f"{lap.state_bytes / 1e6:.3f}"]
    return [lap.optimizer + options, f"{lap.lr:g}", *numbers, *cost]


def table(race: Race) -> Table:
    """The result as a table, best first."""
    result = Table(title=f"{race.task.name}: {race.task.summary}; {race.steps} steps, seed {race.seed}")
    for title in COLUMNS:
        # Two lines a heading leave the numbers their room; where it is too narrow all the same, names are folded, not cut.
        heading = "\n".join(title.rsplit(" ", 1))
        if title == COLUMNS[0]:
            result.add_column(heading, overflow="fold")
        else:
            result.add_column(heading, justify="right", no_wrap=True)
    for lap in race.ranked():
        result.add_row(*_cells(lap), style=None if lap.status == "finished" else "red")
    return result


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def record(race: Race) -> RaceRecord:
    """The result as data that JSON can hold."""
    import torch

    from .. import __version__

    return {
        "format": FORMAT,
        "task": race.task.name,
        "summary": race.task.summary,
        "steps": race.steps,
        "seed": race.seed,
        "parameters": race.parameters,
        "data": dict(race.data),
        "environment": {
            "optimizer_zoo": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "threads": torch.get_num_threads(),
        },
        "laps": [_lap_record(lap) for lap in race.laps],
        "unfinished": list(race.unfinished),
    }


def _lap_record(lap: Lap) -> LapRecord:
    return {
        "optimizer": lap.optimizer,
        "options": dict(lap.options),
        "lr": lap.lr,
        "lr_source": lap.lr_source,
        "status": lap.status,
        "message": lap.message,
        "train_loss": _number(lap.train_loss),
        "held_out_loss": _number(lap.result.loss),
        "held_out_accuracy": _number(lap.result.accuracy),
        "state_bytes": lap.state_bytes,
        "train_losses": [_number(loss) for loss in lap.losses],
        "held_out": [
            {"step": step, "loss": _number(judged.loss), "accuracy": _number(judged.accuracy)}
            for step, judged in lap.held_out
        ],
        "times": {
            "step_seconds": _number(lap.step_seconds),
            "optimizer_seconds": _number(lap.optimizer_seconds),
            "total_seconds": lap.seconds,
        },
    }


def markdown(race: Race, picture: str) -> str:
    """The result as a Markdown page that shows the file ``picture``."""
    sources = {
        "given": "given on the command line",
        "tuned": "tuned for this task",
        "default": "the optimizer's own default",
    }
    lines = [
        f"# {race.task.name}: {race.task.summary}",
        "",
        f"{race.parameters:,} parameters, {race.steps:,} steps, seed {race.seed}; best held-out loss first.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "| --- |" + " ---: |" * (len(COLUMNS) - 1),
        *(f"| {' | '.join(_cells(lap))} |" for lap in race.ranked()),
        "",
        f"![Training and held-out loss of each optimizer]({picture})",
        "",
        "Train loss: mean of the last tenth of the steps. Seconds: medians; a step is forward, backward and optimizer.",
        "State: the tensors that the optimizer keeps, 1 MB = 10⁶ bytes.",
        "",
        *(
            f"- {lap.optimizer}: learning rate {lap.lr:g}, {sources[lap.lr_source]}"
            + (f"; {lap.status}" if lap.status != "finished" else "")
            + (f" ({lap.message.splitlines()[0]})" if lap.message else "")
            for lap in race.laps
        ),
        *(f"- {name}: interrupted" for name in race.unfinished),
        "",
    ]
    return "\n".join(lines)


def save(race: Race, folder: Path) -> list[Path]:
    """Write ``<task>.json``, ``<task>.md`` and ``<task>.png`` into ``folder``, each whole or not at all.

    Returns:
        The paths written.

    Raises:
        RaceError: matplotlib is not installed.
        OSError: the folder can't be written to.
    """
    paths = [folder / f"{race.task.name}.{kind}" for kind in ("json", "md", "png")]
    contents = (
        (json.dumps(record(race), indent=1, allow_nan=False) + "\n").encode(),
        markdown(race, paths[2].name).encode(),
        draw(race),
    )
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in zip(paths, contents, strict=True):
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        unfinished.write_bytes(content)
        unfinished.replace(path)
    return paths
