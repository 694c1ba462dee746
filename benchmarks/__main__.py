"""Measure optimizers: ``python -m benchmarks --sets gpt2 lora --optimizers adamw lion --engines blocked compiled``."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from rich.console import Console

from .contestants import PEERS, Contestant, ours, peers, torch_fused_adamw
from .measure import copy_bandwidth, measure
from .report import machine, records, save, show
from .sets import SETS


def main() -> None:
    """Run the benchmark that the command line describes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--sets", nargs="+", default=["gpt2", "resnet50-like", "lora", "tiny"], choices=sorted(SETS))
    parser.add_argument("--optimizers", nargs="+", default=["adamw", "lion", "adan", "adabelief"])
    parser.add_argument("--engines", nargs="+", default=["auto", "blocked", "compiled"])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--peers", nargs="*", default=["torch", "pytorch_optimizer", "optimi"], choices=sorted(PEERS))
    parser.add_argument("--memory", action="store_true", help="measure the peak extra memory of a step")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    args = parser.parse_args()
    console = Console(width=None if Console().is_terminal else 140)
    notes: list[str] = []
    contestants: list[Contestant] = [torch_fused_adamw()]
    for name in args.optimizers:
        contestants += [ours(name, engine) for engine in args.engines]
        others, absent = peers(name, args.peers)
        contestants += others
        notes += [note for note in absent if note not in notes]
    console.print(", ".join(f"{key} {value}" for key, value in machine().items()))
    bandwidth = copy_bandwidth()
    rows = []
    with console.status("measuring") as status, torch.no_grad():
        for name in args.sets:
            rows += measure(name, contestants, args.rounds, memory=args.memory, report=status.update)
    found = records(rows, bandwidth)
    show(found, console)
    for note in notes:
        console.print(note)
    save(found, notes, bandwidth, args.out)
    console.print(f"written to {args.out}")


if __name__ == "__main__":
    main()
