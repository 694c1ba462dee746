"""Interleaved timing, traffic bounds and peak memory."""

from __future__ import annotations

import ctypes
import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import nn

from .contestants import Contestant
from .sets import make_params

__all__ = ["Row", "copy_bandwidth", "measure", "peak_extra_bytes"]


@dataclass
class Row:
    """What was measured of one contestant on one set; times in seconds."""

    set: str
    label: str
    optimizer: str
    first_step: float = 0.0
    times: list[float] = field(default_factory=list)
    state_bytes: int = 0
    moved_bytes: int = 0
    extra_bytes: int | None = None
    error: str = ""

    @property
    def median(self) -> float:
        """Median time of a step."""
        return statistics.median(self.times) if self.times else float("nan")

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles, as a share of the median."""
        if len(self.times) < 4:
            return float("nan")
        low, _, high = statistics.quantiles(self.times, n=4)
        return (high - low) / 2 / self.median


def measure(
    set_name: str,
    contestants: Sequence[Contestant],
    rounds: int,
    *,
    memory: bool = False,
    report: Callable[[str], None] = lambda _: None,
) -> list[Row]:
    """Time every contestant on its own copy of the set, one step each in turn, ``rounds`` times.

    Interleaving lets a slow phase of the machine fall on all alike.
    """
    rows, runs = [], []
    for contestant in contestants:
        report(f"{set_name}: {contestant.label}: first step")
        row = Row(set_name, contestant.label, contestant.optimizer)
        rows.append(row)
        try:
            params = make_params(set_name)
            opt = contestant.make(params)
            started = time.perf_counter()
            opt.step()
            row.first_step = time.perf_counter() - started
            opt.step()
        except Exception as error:
            row.error = f"{type(error).__name__}: {error}".splitlines()[0][:160]
            continue
        row.state_bytes = _state_bytes(opt)
        row.moved_bytes = _moved_bytes(params, row.state_bytes)
        if memory:
            row.extra_bytes = peak_extra_bytes(opt.step)
        runs.append((row, opt, params, [p.grad for p in params]))
    for index in range(rounds):
        report(f"{set_name}: round {index + 1} of {rounds}")
        for row, opt, params, grads in runs:
            for p, grad in zip(params, grads, strict=True):
                p.grad = grad  # some peers take the gradients away
            started = time.perf_counter()
            opt.step()
            row.times.append(time.perf_counter() - started)
    return rows


def _state_bytes(opt: torch.optim.Optimizer) -> int:
    # A rule may refer to one tensor under two names; storage is counted once.
    storages = {}
    for state in opt.state.values():
        for value in state.values() if isinstance(state, dict) else []:
            if isinstance(value, torch.Tensor) and value.numel() > 1:
                storages[value.untyped_storage().data_ptr(), value.data_ptr()] = value.numel() * value.element_size()
    return sum(storages.values())


def _moved_bytes(params: Sequence[nn.Parameter], state_bytes: int) -> int:
    """Bytes that any implementation must move: gradients in; parameters and states in and out."""
    size = sum(p.numel() * p.element_size() for p in params)
    return 3 * size + 2 * state_bytes


def copy_bandwidth(megabytes: int = 512, rounds: int = 7) -> float:
    """Bytes a second of a large copy, reads and writes counted."""
    source = torch.ones(megabytes * 2**18)
    target = torch.empty_like(source)
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        target.copy_(source)
        times.append(time.perf_counter() - started)
    return 2 * source.numel() * 4 / statistics.median(times)


def peak_extra_bytes(step: Callable[[], object]) -> int | None:
    """How far a step raises the process's peak resident memory; None where the system does not say (not Linux)."""
    try:
        libc = ctypes.CDLL("libc.so.6")
        gc.collect()
        libc.malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before = _status_kb("VmRSS")
        step()
        return max(0, _status_kb("VmHWM") - before) * 1024
    except OSError:
        return None


def _status_kb(key: str) -> int:
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(key):
                return int(line.split()[1])
    raise OSError(f"no {key}")
