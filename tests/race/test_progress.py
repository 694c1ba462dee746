"""Following a race: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import io

from rich.console import Console

from zoo.race.progress import LINES, follow
from zoo.race.runner import run_race

from .tiny import TINY


def followed(terminal: bool) -> str:
    out = io.StringIO()
    console = Console(
        file=out, force_terminal=terminal, width=120, legacy_windows=False, color_system=None, _environ={}
    )
    names = ["adam", "sgd"]
    with follow(console, names, 40) as watcher:
        run_race(TINY, names, steps=40, learning_rates={"sgd": 1e38}, watcher=watcher)
    return out.getvalue()


def test_a_terminal_gets_a_bar_an_optimizer_with_its_loss() -> None:
    text = followed(terminal=True)
    last = text.replace("\r", "\n").splitlines()[-3:]
    assert any("adam" in line and "━" in line and "40/40" in line and "held out" in line for line in last)
    assert any("sgd" in line and "diverged" in line for line in last)


def test_a_pipe_gets_plain_lines() -> None:
    text = followed(terminal=False)
    assert "\x1b" not in text and "━" not in text
    lines = text.splitlines()
    assert len([line for line in lines if line.startswith("adam: step ")]) == LINES
    assert lines[0].startswith("adam: step 4 of 40, loss ")
    assert lines[LINES - 1].startswith("adam: step 40 of 40, loss ") and lines[LINES - 1].endswith("%")
    assert lines[-1].startswith("sgd: step ") and lines[-1].endswith("diverged")
