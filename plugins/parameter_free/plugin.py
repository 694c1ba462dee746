"""The parameter-free family: what the registry lists."""

from __future__ import annotations

from collections.abc import Iterator

from zoo import OptimizerSpec, Paper, hookimpl

_D_ADAPTATION = Paper("Learning-Rate-Free Learning by D-Adaptation", 2023, "2301.07733")
_DOG = Paper("DoG is SGD's Best Friend: A Parameter-Free Dynamic Step Size Schedule", 2023, "2302.12022")

_TABLE = (
    ("prodigy", "Prodigy", Paper("Prodigy: An Expeditiously Adaptive Parameter-Free Learner", 2023, "2306.06101"),
     "Adam whose step size is an estimate of the distance to the solution."),
    ("dadapt_adam", "DAdaptAdam", _D_ADAPTATION, "Adam whose step size is a growing lower bound of the distance to the solution."),
    ("dadapt_sgd", "DAdaptSGD", _D_ADAPTATION, "SGD with iterate averaging and an estimated step size."),
    ("dadapt_adagrad", "DAdaptAdaGrad", _D_ADAPTATION, "Dual-averaging AdaGrad with an estimated step size."),
    ("dadapt_lion", "DAdaptLion", _D_ADAPTATION, "Lion with an estimated step size."),
    ("dadapt_adan", "DAdaptAdan", _D_ADAPTATION, "Adan with an estimated step size."),
    ("dog", "DoG", _DOG, "SGD whose step size is the distance travelled over the gradients seen."),
    ("ldog", "LDoG", _DOG, "DoG for each tensor by itself."),
    ("dowg", "DoWG", Paper("DoWG Unleashed: An Efficient Universal Parameter-Free Gradient Descent Method", 2023, "2305.16284"),
     "DoG whose gradients are weighted by the distance."),
)  # fmt: skip


@hookimpl
def zoo_optimizers() -> Iterator[OptimizerSpec]:
    """Optimizers that find their own learning rate."""
    for name, cls, paper, summary in _TABLE:
        target = f"zoo_plugins.parameter_free.{name}:{cls}"
        tags = ("parameter-free", "tensor" if name == "ldog" else "global")
        yield OptimizerSpec(name, target, family="parameter_free", summary=summary, paper=paper, tags=tags)
