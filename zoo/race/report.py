"""The result of a race: a table, JSON, Markdown and a picture."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from .runner import Lap
from .tasks import RaceError, RaceTask

__all__ = ["save", "table"]

_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", "--", ":", "-.")
_COLUMNS = ("optimizer", "lr", "train loss", "held-out loss", "held-out accuracy", "ms a step", "state MB")


def _ranked(laps: Sequence[Lap]) -> list[Lap]:
    """Best held-out loss first, diverged ones last."""
    return sorted(laps, key=lambda lap: (lap.diverged, lap.held_out[-1][1] if lap.held_out else math.inf))


def _cells(lap: Lap) -> list[str]:
    if lap.diverged:
        return [lap.optimizer, f"{lap.lr:g}", f"diverged at step {len(lap.losses)}", "", "", "", ""]
    return [
        lap.optimizer,
        f"{lap.lr:g}",
        f"{lap.train_loss:.4f}",
        f"{lap.held_out[-1][1]:.4f}",
        f"{lap.held_out_accuracy:.1%}",
        f"{lap.step_seconds * 1e3:.2f}",
        f"{lap.state_bytes / 1e6:.3f}",
    ]


def table(task: RaceTask, laps: Sequence[Lap]) -> Table:
    """The result as a table, best first."""
    result = Table(title=f"{task.name}: {task.summary}")
    for index, title in enumerate(_COLUMNS):
        result.add_column(title, justify="left" if index == 0 else "right", no_wrap=True)
    for lap in _ranked(laps):
        result.add_row(*_cells(lap))
    return result


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _record(lap: Lap) -> dict[str, Any]:
    return {
        "optimizer": lap.optimizer,
        "lr": lap.lr,
        "diverged": lap.diverged,
        "train_loss": _number(lap.train_loss),
        "held_out_loss": _number(lap.held_out[-1][1]),
        "held_out_accuracy": _number(lap.held_out_accuracy),
        "state_bytes": lap.state_bytes,
        "train_losses": [_number(loss) for loss in lap.losses],
        "held_out_losses": [[step, _number(loss)] for step, loss in lap.held_out],
        "times": {"step_seconds": lap.step_seconds},
    }


def save(task: RaceTask, laps: Sequence[Lap], *, steps: int, seed: int, folder: Path) -> list[Path]:
    """Write ``<task>.json``, ``<task>.md`` and ``<task>.png``; the paths written."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{task.name}.{kind}" for kind in ("json", "md", "png")]
    record = {"task": task.name, "steps": steps, "seed": seed, "laps": [_record(lap) for lap in laps]}
    paths[0].write_text(json.dumps(record, indent=1) + "\n")
    lines = [f"# {task.name}: {task.summary}", "", f"{steps} steps, seed {seed}; best held-out loss first.", ""]
    lines += [f"| {' | '.join(_COLUMNS)} |", "| --- |" + " ---: |" * (len(_COLUMNS) - 1)]
    lines += [f"| {' | '.join(_cells(lap))} |" for lap in _ranked(laps)]
    lines += ["", f"![loss curves]({paths[2].name})", ""]
    paths[1].write_text("\n".join(lines))
    _picture(task, laps, paths[2])
    return paths


def _smoothed(losses: Sequence[float], weight: float = 0.9) -> list[float]:
    """A debiased moving average: single batches are too noisy to compare."""
    average, total, out = 0.0, 0.0, []
    for loss in losses:
        average, total = weight * average + (1 - weight) * loss, weight * total + (1 - weight)
        out.append(average / total)
    return out


def _picture(task: RaceTask, laps: Sequence[Lap], path: Path) -> None:
    try:
        import matplotlib
    except ImportError:
        raise RaceError("the picture is drawn with matplotlib: pip install 'optimizer-zoo[race]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(12, 5), sharey=True, layout="constrained")
    for rank, lap in enumerate(_ranked(laps)):
        style = {"color": _COLORS[rank % 7], "linestyle": _DASHES[rank // 7 % 4], "linewidth": 1.8}
        finite = [loss for loss in lap.losses if math.isfinite(loss)]
        label = f"{lap.optimizer} (diverged)" if lap.diverged else lap.optimizer
        panels[0].plot(range(1, len(finite) + 1), _smoothed(finite), **style)
        points = [(step, loss) for step, loss in lap.held_out if math.isfinite(loss)]
        panels[1].plot([s for s, _ in points], [loss for _, loss in points], label=label, **style)
    for panel, title in zip(panels, ("training loss (smoothed)", "held-out loss"), strict=True):
        panel.set_title(title)
        panel.set_xlabel("step")
        panel.set_yscale("log")
        panel.grid(True, which="major", alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("cross entropy (log scale)")
    figure.suptitle(f"{task.name}: {task.summary}")
    figure.legend(loc="outside right center", title="best held-out first", frameon=False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
