"""The adaptive family: what the registry lists."""

from __future__ import annotations

from collections.abc import Iterator

from zoo import OptimizerSpec, Paper, hookimpl


@hookimpl
def zoo_optimizers() -> Iterator[OptimizerSpec]:
    """Adam and its kin."""
    yield OptimizerSpec(
        "adam",
        "zoo_plugins.adaptive.adam:Adam",
        family="adaptive",
        summary="Divides a moving average of the gradient by the root of one of its square.",
        paper=Paper("Adam: A Method for Stochastic Optimization", 2015, "1412.6980"),
        tags=("elementwise", "torch"),
    )
    yield OptimizerSpec(
        "adamw",
        "zoo_plugins.adaptive.adamw:AdamW",
        family="adaptive",
        summary="Adam whose weight decay acts on the weights, not through the gradient.",
        paper=Paper("Decoupled Weight Decay Regularization", 2019, "1711.05101"),
        aliases=("adamw_hf",),
        tags=("elementwise", "torch"),
    )
