"""The second-order family: what the registry lists."""

from __future__ import annotations

from collections.abc import Iterator

from zoo import OptimizerSpec, Paper, hookimpl

_SOPHIA = Paper(
    "Sophia: A Scalable Stochastic Second-order Optimizer for Language Model Pre-training", 2023, "2305.14342"
)


@hookimpl
def zoo_optimizers() -> Iterator[OptimizerSpec]:
    """Optimizers that use the diagonal of the Hessian."""
    yield OptimizerSpec(
        "adahessian",
        "zoo_plugins.second_order.adahessian:AdaHessian",
        family="second_order",
        summary="Adam with the squared diagonal of the Hessian in the place of the squared gradient.",
        paper=Paper("ADAHESSIAN: An Adaptive Second Order Optimizer for Machine Learning", 2021, "2006.00719"),
        tags=("elementwise", "create-graph"),
    )
    yield OptimizerSpec(
        "sophia_h",
        "zoo_plugins.second_order.sophia_h:SophiaH",
        family="second_order",
        summary="Momentum divided by the Hessian's diagonal, each element clipped; Hutchinson's estimate.",
        paper=_SOPHIA,
        aliases=("sophia",),
        tags=("elementwise", "create-graph"),
    )
    yield OptimizerSpec(
        "sophia_g",
        "zoo_plugins.second_order.sophia_g:SophiaG",
        family="second_order",
        summary="Sophia with squared gradients at sampled labels as its curvature.",
        paper=_SOPHIA,
        tags=("elementwise",),
    )
