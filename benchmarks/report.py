"""The measurements as a table, JSON, Markdown and a bar chart."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from .measure import Row

__all__ = ["machine", "records", "save", "show"]

YARDSTICK = "torch adamw fused"


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return {
        "cpu": model,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": platform.system(),
    }


def records(rows: Sequence[Row], bandwidth: float) -> list[dict[str, Any]]:
    """One plain record a row, with ratios to torch's fused AdamW of the same set, in time and per byte moved."""
    found = []
    for row in rows:
        yardstick = next((r for r in rows if r.set == row.set and r.label == YARDSTICK and not r.error), None)
        record: dict[str, Any] = {"set": row.set, "label": row.label, "optimizer": row.optimizer, "error": row.error}
        if not row.error:
            record |= {
                "median_ms": row.median * 1e3,
                "spread": row.spread,
                "first_step_s": row.first_step,
                "state_mb": row.state_bytes / 1e6,
                "extra_mb": None if row.extra_bytes is None else row.extra_bytes / 1e6,
                "times_traffic_bound": row.median / (row.moved_bytes / bandwidth),
            }
            if yardstick is not None:
                record["times_fused"] = row.median / yardstick.median
                record["times_fused_per_byte"] = (row.median / row.moved_bytes) / (
                    yardstick.median / yardstick.moved_bytes
                )
        found.append(record)
    return found


_COLUMNS = (
    ("median_ms", "ms", "{:.2f}"),
    ("spread", "±", "{:.0%}"),
    ("times_fused", "× fused", "{:.2f}"),
    ("times_fused_per_byte", "× fused a byte", "{:.2f}"),
    ("times_traffic_bound", "× traffic", "{:.2f}"),
    ("first_step_s", "first s", "{:.2f}"),
    ("state_mb", "state MB", "{:.1f}"),
    ("extra_mb", "extra MB", "{:.1f}"),
)


def _cells(record: dict[str, Any]) -> list[str]:
    if record["error"]:
        return [record["error"], *[""] * (len(_COLUMNS) - 1)]
    cells = []
    for key, _, form in _COLUMNS:
        value = record.get(key)
        cells.append("" if value is None or (isinstance(value, float) and math.isnan(value)) else form.format(value))
    return cells


def show(found: Sequence[dict[str, Any]], console: Console) -> None:
    """Print a table for every set."""
    for name in dict.fromkeys(record["set"] for record in found):
        table = Table(title=name)
        table.add_column("optimizer", no_wrap=True)
        for _, title, _ in _COLUMNS:
            table.add_column(title, justify="right")
        for record in found:
            if record["set"] == name:
                table.add_row(record["label"], *_cells(record))
        console.print(table)


def save(found: Sequence[dict[str, Any]], notes: Sequence[str], bandwidth: float, folder: Path) -> None:
    """Write results.json, results.md and a chart a set."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {"machine": machine(), "copy_bandwidth_gb_s": bandwidth / 1e9, "notes": list(notes)}
    (folder / "results.json").write_text(json.dumps({**about, "rows": list(found)}, indent=1) + "\n")
    lines = [
        "# Benchmark",
        "",
        ", ".join(f"{key}: {value}" for key, value in about["machine"].items())  # type: ignore[attr-defined]
        + f", copy bandwidth {bandwidth / 1e9:.1f} GB/s",
        "",
        "Medians of interleaved runs in one process. `× fused` is the time over torch's fused AdamW on the same set,",
        "`a byte` the same per byte that the rule must move, `× traffic` the time over those bytes at copy bandwidth.",
        *[f"\n{note}" for note in notes],
    ]
    for name in dict.fromkeys(record["set"] for record in found):
        lines += ["", f"## {name}", "", "| optimizer | " + " | ".join(title for _, title, _ in _COLUMNS) + " |"]
        lines.append("| --- |" + " ---: |" * len(_COLUMNS))
        lines += [f"| {r['label']} | " + " | ".join(_cells(r)) + " |" for r in found if r["set"] == name]
        _chart([r for r in found if r["set"] == name and not r["error"]], name, folder / f"{name}.png")
    (folder / "results.md").write_text("\n".join(lines) + "\n")


def _chart(found: Sequence[dict[str, Any]], name: str, path: Path) -> None:
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = sorted(found, key=lambda record: record["median_ms"])
    labels = [record["label"] for record in found]
    times = [record["median_ms"] for record in found]
    colors = [
        "#0072B2" if label.startswith("zoo") else "#D55E00" if label == YARDSTICK else "#999999" for label in labels
    ]
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.28 * len(found)), layout="constrained")
    bars = axes.barh(labels, times, color=colors, height=0.7)
    axes.bar_label(bars, [f" {value:.3g}" for value in times], fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds a step (median, log scale); blue: zoo, orange: torch's fused AdamW, grey: others")
    axes.set_title(f"{name}: time of an optimizer step")
    axes.tick_params(axis="y", labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
