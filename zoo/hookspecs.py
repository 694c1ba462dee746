"""The hooks that a plugin may implement."""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

from .spec import OptimizerSpec

__all__ = ["API_VERSION", "hookimpl", "hookspec"]

API_VERSION = 1
hookspec = pluggy.HookspecMarker("zoo")
hookimpl = pluggy.HookimplMarker("zoo")


@hookspec
def zoo_optimizers() -> Iterable[OptimizerSpec]:  # type: ignore[empty-body]
    """Return (or yield) the specs of the optimizers that this plugin brings. Must not import torch."""
