"""Whom we measure: our optimizers in any engine, torch's, and the peers that are installed."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import zoo

__all__ = ["PEERS", "Contestant", "ours", "peers", "torch_fused_adamw"]

Params = Sequence[nn.Parameter]

_TORCH_NAMES = {
    "adam": "Adam", "adamw": "AdamW", "sgd": "SGD", "adagrad": "Adagrad", "adadelta": "Adadelta", "adamax": "Adamax",
    "nadam": "NAdam", "radam": "RAdam", "rmsprop": "RMSprop", "rprop": "Rprop", "asgd": "ASGD",
    "adafactor": "Adafactor", "muon": "Muon",
}  # fmt: skip
_SPELLED = {"rmsprop_tf": "rmsproptf", "schedule_free_adamw": "schedulefreeadamw"}


@dataclass(frozen=True)
class Contestant:
    """One optimizer to measure.

    Args:
        label: how the table calls it.
        optimizer: our name of the algorithm, to group rows.
        make: builds it for parameters.
    """

    label: str
    optimizer: str
    make: Callable[[Params], torch.optim.Optimizer]


def ours(name: str, engine: str, lr: float = 1e-4) -> Contestant:
    """Our optimizer in an engine."""
    return Contestant(f"zoo {name} {engine}", name, lambda ps: zoo.create_optimizer(name, ps, lr=lr, engine=engine))


def torch_fused_adamw() -> Contestant:
    """The yardstick: torch's hand-written fused AdamW."""
    return Contestant("torch adamw fused", "adamw", lambda ps: torch.optim.AdamW(ps, lr=1e-4, fused=True))


def peers(name: str, packages: Sequence[str], lr: float = 1e-4) -> tuple[list[Contestant], list[str]]:
    """What these packages offer under our optimizer's name, and a note for each package that is absent."""
    found: list[Contestant] = []
    notes: list[str] = []
    for package in packages:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = importlib.import_module(package)
        except Exception as error:
            notes.append(f"{package} skipped: {type(error).__name__}: {error}")
            continue
        cls = PEERS[package](module, name)
        if cls is not None:
            found.append(Contestant(f"{package} {name}", name, _maker(cls, lr)))
    return found, notes


def _maker(cls: Any, lr: float) -> Callable[[Params], torch.optim.Optimizer]:
    def make(params: Params) -> torch.optim.Optimizer:
        opt: torch.optim.Optimizer = cls(list(params), lr=lr)
        return opt

    return make


def _pytorch_optimizer(module: Any, name: str) -> Any:
    try:
        return module.load_optimizer(_SPELLED.get(name, name.replace("_", "")))
    except (NotImplementedError, ValueError, ImportError):
        return None


def _torch(module: Any, name: str) -> Any:
    return getattr(module.optim, _TORCH_NAMES.get(name, ""), None)


def _by_class(module: Any, name: str) -> Any:
    wanted = name.replace("_", "")
    names = [n for n in dir(module) if n.lower() == wanted and isinstance(getattr(module, n), type)]
    return getattr(module, names[0]) if names else None


PEERS: dict[str, Callable[[Any, str], Any]] = {
    "torch": _torch,
    "pytorch_optimizer": _pytorch_optimizer,
    "optimi": _by_class,
    "heavyball": _by_class,
}
"""Packages to compare with, and how each is asked for an optimizer. heavyball compiles for minutes: ask for it."""
