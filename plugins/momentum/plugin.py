"""The momentum family: what the registry lists."""

from __future__ import annotations

from collections.abc import Iterator

from zoo import OptimizerSpec, Paper, hookimpl


@hookimpl
def zoo_optimizers() -> Iterator[OptimizerSpec]:
    """SGD and its kin."""
    yield OptimizerSpec(
        "sgd",
        "zoo_plugins.momentum.sgd:SGD",
        family="momentum",
        summary="Stochastic gradient descent with heavy-ball or Nesterov momentum.",
        paper=Paper("On the importance of initialization and momentum in deep learning", 2013),
        aliases=("momentum", "nesterov"),
        tags=("elementwise", "torch"),
    )
