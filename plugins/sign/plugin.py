"""The sign family: what the registry lists."""

from __future__ import annotations

from collections.abc import Iterator

from zoo import OptimizerSpec, Paper, hookimpl


@hookimpl
def zoo_optimizers() -> Iterator[OptimizerSpec]:
    """Optimizers that step by the sign of a direction."""
    yield OptimizerSpec(
        "lion",
        "zoo_plugins.sign.lion:Lion",
        family="sign",
        summary="Steps by the sign of an interpolation between momentum and gradient; one state tensor.",
        paper=Paper("Symbolic Discovery of Optimization Algorithms", 2023, "2302.06675"),
        tags=("elementwise",),
    )
