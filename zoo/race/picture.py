"""The picture of a race: training and held-out loss of every optimizer."""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Sequence
from typing import Any

from .errors import RaceError
from .runner import Lap, Race

__all__ = ["SIZE", "check_available", "draw"]

SIZE = (1680, 720)
"""Width and height in pixels."""
_DPI = 120

# Okabe and Ito's palette without its yellow, which is faint on white: readers with any colour vision tell these apart.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))
_GREY = "#555555"


def check_available() -> None:
    """Raise a :class:`RaceError` where the picture can't be drawn, before anything is trained for it."""
    if importlib.util.find_spec("matplotlib") is None:
        raise RaceError("the picture needs matplotlib: pip install 'optimizer-zoo[race]'")


def draw(race: Race) -> bytes:
    """The picture as PNG, ``SIZE`` pixels."""
    check_available()
    import matplotlib.style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    laps = race.ranked()
    # Neither pyplot nor the user's own style: no global state is touched, and the picture is the same everywhere.
    with matplotlib.style.context("default"):
        figure = Figure(figsize=(SIZE[0] / _DPI, SIZE[1] / _DPI), dpi=_DPI)
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, 2)
        figure.subplots_adjust(left=0.045, right=0.775, bottom=0.085, top=0.84, wspace=0.12)
        _axes(panels, race)
        for rank, lap in enumerate(laps):
            _curves(panels, lap, race, rank)
        _labels(panels[1], laps)
        figure.text(0.045, 0.945, f"{race.task.name}: {race.task.summary}", fontsize=14, weight="bold")
        names = f"{len(laps)} optimizer{'s' if len(laps) != 1 else ''}, same initial weights and batches"
        size = f"{race.parameters:,} parameters, {race.steps:,} steps, seed {race.seed}"
        figure.text(0.045, 0.9, f"{names}; {size}", color=_GREY)
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=_DPI, metadata={"Software": None})
    return out.getvalue()


def _axes(panels: Any, race: Race) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    start = max((lap.held_out[0][1].loss for lap in race.laps if lap.held_out), default=1.0)
    curves = (
        [loss for lap in race.laps for loss in _smoothed(lap.losses, race.steps)],
        [loss for lap in race.laps for loss in _held_out(lap)[1]],
    )
    for panel, title, losses in zip(panels, ("training loss, moving average", "held-out loss"), curves, strict=True):
        low = min((loss for loss in losses if 0 < loss < start), default=start / 2)
        panel.set_title(f"{title} (log scale)", loc="left", fontsize=11)
        panel.set_xlabel("step")
        panel.set_xlim(0, race.steps)
        panel.set_yscale("log")
        # Curves that climb far above the start are cut off: what matters is below.
        panel.set_ylim(low / 1.15, start * 1.25)
        decades = math.log10(start / low)
        fine = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8) if decades < 0.8 else (1, 2, 5) if decades < 3 else (1,)
        panel.yaxis.set_major_locator(LogLocator(subs=fine, numticks=30))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        panel.yaxis.set_minor_locator(NullLocator())
        panel.tick_params(colors=_GREY, length=3)
        panel.grid(True, color="#e6e6e6", linewidth=0.8)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
        panel.spines[["left", "bottom"]].set_color("#aaaaaa")


def _curves(panels: Any, lap: Lap, race: Race, rank: int) -> None:
    color, dash = _style(rank)
    style: dict[str, Any] = {"color": color, "linestyle": dash, "linewidth": 1.8, "zorder": 3 - rank / 1000}
    smoothed = _smoothed(lap.losses, race.steps)
    curves = ((range(1, len(smoothed) + 1), smoothed), _held_out(lap))
    for panel, (steps, losses) in zip(panels, curves, strict=True):
        panel.plot(steps, losses, **style)
        if lap.status != "finished" and losses:
            panel.plot(steps[-1:], losses[-1:], marker="x", color=color, markersize=8, markeredgewidth=2, clip_on=False)


def _held_out(lap: Lap) -> tuple[list[int], list[float]]:
    """Steps and losses of the evaluations that gave a finite one."""
    pairs = [(step, judged.loss) for step, judged in lap.held_out if math.isfinite(judged.loss)]
    return [step for step, _ in pairs], [loss for _, loss in pairs]


def _smoothed(losses: Sequence[float], steps: int) -> list[float]:
    """A moving average without bias towards 0, over about a fortieth of the race; ends where a loss is not finite."""
    weight = 1 - 1 / max(1.0, steps / 40)
    average, total, out = 0.0, 0.0, []
    for loss in losses:
        if not math.isfinite(loss):
            break
        average, total = weight * average + (1 - weight) * loss, weight * total + (1 - weight)
        out.append(average / total)
    return out


def _labels(panel: Any, laps: Sequence[Lap]) -> None:
    """Each optimizer's name and result at the end of its held-out curve, moved apart where curves end close together."""
    if not laps:
        return
    wanted = [_height(panel, lap) for lap in laps]
    size = min(9.5, 300 / len(laps))
    heights = _spread(wanted, gap=1.75 * size * _DPI / 72 / panel.bbox.height)
    for rank, (lap, end, height) in enumerate(zip(laps, wanted, heights, strict=True)):
        color, dash = _style(rank)
        finished = lap.status == "finished"
        if finished:
            # From the curve's end to its label, and a piece of the line as in a legend.
            bend = {"transform": panel.transAxes, "color": color, "clip_on": False}
            panel.plot((1, 1.03), (end, height), linewidth=0.8, **bend)
            panel.plot((1.03, 1.085), (height, height), linewidth=1.8, linestyle=dash, **bend)
        name = panel.annotate(
            lap.optimizer,
            (1.095, height),
            xycoords="axes fraction",
            color=color,
            fontsize=size,
            weight="bold",
            va="center",
            annotation_clip=False,
        )
        result = (
            f"{_short(lap.result.loss)}, {lap.result.accuracy:.1%}"
            if finished
            else f"{lap.status} at step {lap.last_step}"
        )
        panel.annotate(
            result,
            (1, 0.5),
            xycoords=name,
            xytext=(5, 0),
            textcoords="offset points",
            color=_GREY,
            fontsize=size - 1,
            va="center",
            annotation_clip=False,
        )


def _height(panel: Any, lap: Lap) -> float:
    """Where a lap's held-out curve ends, in the panel's height; the top for one that did not finish."""
    if lap.status != "finished":
        return 1.0
    end = panel.transData.transform((1, lap.result.loss))
    return min(1.0, float(panel.transAxes.inverted().transform(end)[1]))


def _short(loss: float) -> str:
    return f"{loss:.3f}" if 0.001 <= loss < 100 else f"{loss:.2g}"


def _style(rank: int) -> tuple[str, Any]:
    """Colour and dashes: all colours in solid lines before any dashed one."""
    return _COLORS[rank % len(_COLORS)], _DASHES[rank // len(_COLORS) % len(_DASHES)]


def _spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Heights in the order of ``wanted`` (0 bottom, 1 top), at least ``gap`` apart, close to those wanted, within 0 to 1."""
    if not wanted:
        return []
    gap = min(gap, 1 / len(wanted))
    # Without the gaps the heights need only rise: the closest rising sequence pools neighbours that fall into their mean.
    pools: list[tuple[float, int]] = []
    for index, height in enumerate(wanted):
        pools.append((height - index * gap, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (mean, count), (last, last_count) = pools[-2], pools.pop()
            pools[-1] = ((mean * count + last * last_count) / (count + last_count), count + last_count)
    rising = [mean for mean, count in pools for _ in range(count)]
    room = 1 - (len(wanted) - 1) * gap
    return [min(max(height, 0.0), room) + index * gap for index, height in enumerate(rising)]
