"""The hooks that a plugin may implement, with :data:`hookimpl`.

Implementations are called in pluggy's order: ``tryfirst`` before the others, ``trylast`` after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pluggy

from .spec import OptimizerSpec

if TYPE_CHECKING:
    import torch

    from .race.tasks import RaceTask

__all__ = ["API_VERSION", "hookimpl", "hookspec"]

API_VERSION = 1
hookspec = pluggy.HookspecMarker("zoo")
hookimpl = pluggy.HookimplMarker("zoo")


@hookspec
def zoo_optimizers() -> Iterable[OptimizerSpec]:  # type: ignore[empty-body]
    """Return (or yield) the specs of the optimizers that this plugin brings. Must not import torch."""


@hookspec
def zoo_configure(spec: OptimizerSpec, options: dict[str, Any]) -> None:
    """See or amend the options of an optimizer that is about to be created, by changing ``options`` in place.

    They are validated afterwards like any others. ``options`` is a copy: the caller's dictionary is safe.
    """


@hookspec
def zoo_check(spec: OptimizerSpec, options: Mapping[str, Any]) -> None:
    """Check what is about to be created, after every ``zoo_configure``; raise to refuse it."""


@hookspec
def zoo_created(spec: OptimizerSpec, optimizer: torch.optim.Optimizer) -> None:
    """See an optimizer that was created by name."""


@hookspec
def zoo_race_tasks() -> Iterable[RaceTask]:  # type: ignore[empty-body]
    """Return (or yield) tasks for ``zoo race``; called when a race starts."""
