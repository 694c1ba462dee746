"""Following a race as it runs: bars on a terminal, lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from .runner import Lap, Watcher

__all__ = ["follow"]

LINES = 10
"""Lines an optimizer gets where there is no terminal."""


@contextmanager
def follow(console: Console, optimizers: Sequence[str], steps: int) -> Iterator[Watcher]:
    """A watcher that shows the race on ``console`` inside a ``with`` block."""
    if not console.is_terminal:
        yield _Lines(console, steps)
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[note]}"), console=console) as progress:
        yield _Bars(progress, {name: progress.add_task(name, total=steps, note="", start=False) for name in optimizers})


def _note(lap: Lap) -> str:
    loss = f"loss {lap.losses[-1]:.4f}" if lap.losses else ""
    if lap.status == "finished":
        return f"{loss}, held out {lap.result.loss:.4f}, {lap.result.accuracy:.1%}"
    if lap.status == "failed":
        return f"failed: {lap.message.splitlines()[0]}"
    return f"{loss}, diverged" if lap.status == "diverged" else loss


class _Bars:
    """A bar an optimizer, with its loss."""

    def __init__(self, progress: Progress, bars: dict[str, TaskID]) -> None:
        self.progress = progress
        self.bars = bars

    def stepped(self, lap: Lap) -> None:
        bar = self.bars[lap.optimizer]
        if len(lap.losses) == 1:
            self.progress.start_task(bar)
        self.progress.update(bar, completed=len(lap.losses), note=_note(lap))

    def ended(self, lap: Lap) -> None:
        self.progress.update(self.bars[lap.optimizer], completed=len(lap.losses), note=_note(lap))
        self.progress.stop_task(self.bars[lap.optimizer])


class _Lines:
    """A line now and then."""

    def __init__(self, console: Console, steps: int) -> None:
        self.console = console
        self.steps = steps

    def stepped(self, lap: Lap) -> None:
        step = len(lap.losses)
        if step % max(1, self.steps // LINES) == 0 and step != self.steps and lap.status == "running":
            self._line(lap)

    def ended(self, lap: Lap) -> None:
        self._line(lap)

    def _line(self, lap: Lap) -> None:
        text = f"{lap.optimizer}: step {len(lap.losses)} of {self.steps}, {_note(lap)}"
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)
