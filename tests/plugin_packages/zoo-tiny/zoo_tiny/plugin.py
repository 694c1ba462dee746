"""What the plugin brings; imports no torch."""

from zoo import OptimizerSpec, Paper, hookimpl


@hookimpl
def zoo_optimizers():
    """One optimizer."""
    yield OptimizerSpec(
        "tiny_step",
        "zoo_tiny.tiny_step:TinyStep",
        family="tiny",
        summary="Steps along the cube root of the gradient.",
        paper=Paper("None yet", 2026),
        aliases=("tiny-cbrt",),
        tags=("elementwise",),
    )
