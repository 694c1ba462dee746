"""Engines run rules: the same pipeline as plain loop, cache-blocked, foreach, compiled or torch's fused kernel.

:class:`EngineSet` holds the engines of one optimizer and picks one for each batch: what the group's ``engine``
says, then torch's flags, then :func:`set_default_engine`, then the environment variable ``ZOO_ENGINE``, then
what is fastest without making anybody wait.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_args

from ..config import EngineName
from .base import Batch, Engine, Item, Totals
from .blocked import BlockedEngine
from .compiled import CompiledEngine
from .foreach import ForeachEngine
from .fused import FusedEngine, has_fused_kernel
from .loop import LoopEngine

if TYPE_CHECKING:
    from ..plan import Plan

__all__ = ["Batch", "Engine", "EngineSet", "Item", "Totals", "default_engine", "set_default_engine"]

_ENGINES: dict[str, Callable[[], Engine]] = {
    "loop": LoopEngine,
    "blocked": BlockedEngine,
    "compiled": CompiledEngine,
    "foreach": ForeachEngine,
    "fused": FusedEngine,
}
_default: list[EngineName] = []


def set_default_engine(name: EngineName | None) -> None:
    """Choose the engine of every optimizer that does not choose its own; None goes back to the environment's or auto.

    Raises:
        ValueError: no engine has this name.
    """
    if name is not None and name not in get_args(EngineName):
        raise ValueError(f"unknown engine {name!r}; engines: {', '.join(get_args(EngineName))}")
    _default[:] = [] if name is None else [name]


def default_engine() -> EngineName:
    """The engine that optimizers use that do not choose their own."""
    if _default:
        return _default[0]
    name = os.environ.get("ZOO_ENGINE", "auto") or "auto"
    if name not in get_args(EngineName):
        raise ValueError(f"ZOO_ENGINE={name!r} names no engine; engines: {', '.join(get_args(EngineName))}")
    return name  # type: ignore[return-value]


class EngineSet:
    """The engines of one optimizer, made when first needed; holds caches only."""

    def __init__(self) -> None:
        self._made: dict[str, Engine] = {}
        self.plans: dict[Any, Plan] = {}

    def choose(self, group: Mapping[str, Any], batch: Batch) -> Engine:
        """The engine for this batch under its group's options."""
        return self.get(_pick(group, batch))

    def get(self, name: str) -> Engine:
        """The engine of this name."""
        if name not in self._made:
            self._made[name] = _ENGINES[name]()
        return self._made[name]


def _pick(group: Mapping[str, Any], batch: Batch) -> str:
    if group["differentiable"]:
        return "loop"
    name = group["engine"]
    if name == "auto" and group["fused"]:
        name = "fused"
    if name == "auto" and group["foreach"]:
        name = "foreach"
    if name == "auto":
        name = default_engine()
    if name == "fused":
        return "fused" if _fused_applies(batch) else "compiled"
    if name != "auto":
        return str(name)
    if group["fused"] is not False and _fused_applies(batch):
        return "fused"
    if batch.items[0].param.device.type != "cpu":
        return "foreach" if group["foreach"] is not False else "loop"
    return "blocked"


def _fused_applies(batch: Batch) -> bool:
    applies = batch.cache.get("fused")
    if applies is None:
        applies = batch.cache["fused"] = has_fused_kernel(batch)
    return bool(applies)
