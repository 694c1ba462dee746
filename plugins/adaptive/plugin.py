"""The adaptive family: what the registry lists."""

from __future__ import annotations

from collections.abc import Iterator

from zoo import OptimizerSpec, Paper, hookimpl

_ADAM = Paper("Adam: A Method for Stochastic Optimization", 2015, "1412.6980")
_NADAM = Paper("Incorporating Nesterov Momentum into Adam", 2016)
_RMSPROP = Paper("Neural Networks for Machine Learning, lecture 6.5: RMSprop", 2012)

_TABLE = (
    ("adam", "Adam", "elementwise", (), _ADAM,
     "Divides a moving average of the gradient by the root of one of its square."),
    ("adamw", "AdamW", "elementwise", ("adamw_hf",), Paper("Decoupled Weight Decay Regularization", 2019, "1711.05101"),
     "Adam whose weight decay acts on the weights, not through the gradient."),
    ("adamax", "Adamax", "elementwise", (), _ADAM, "Adam with the infinity norm in the denominator."),
    ("nadam", "NAdam", "tensor", ("nesterov_adam",), _NADAM, "Adam with Nesterov momentum and a momentum schedule."),
    ("nadamw", "NAdamW", "elementwise", (), _NADAM, "AdamW that looks ahead along its momentum, without a schedule."),
    ("radam", "RAdam", "elementwise", ("rectified_adam",),
     Paper("On the Variance of the Adaptive Learning Rate and Beyond", 2020, "1908.03265"),
     "Adam that warms itself up by rectifying the variance of its step."),
    ("adagrad", "Adagrad", "elementwise", (),
     Paper("Adaptive Subgradient Methods for Online Learning and Stochastic Optimization", 2011),
     "Divides by the root of the sum of all squared gradients."),
    ("adadelta", "Adadelta", "elementwise", (), Paper("ADADELTA: An Adaptive Learning Rate Method", 2012, "1212.5701"),
     "Scales by the ratio of recent updates to recent gradients."),
    ("rmsprop", "RMSprop", "elementwise", (), _RMSPROP,
     "Divides by the root of a moving average of the squared gradient; momentum, centering."),
    ("rmsprop_tf", "RMSpropTF", "elementwise", ("rmsproptf",), _RMSPROP, "RMSprop with TensorFlow's details."),
    ("rprop", "Rprop", "elementwise", (),
     Paper("A direct adaptive method for faster backpropagation learning: the RPROP algorithm", 1993,
           doi="10.1109/ICNN.1993.298623"),
     "Steps by the sign, each weight with a step size that its changes of sign adapt."),
    ("yogi", "Yogi", "elementwise", (), Paper("Adaptive Methods for Nonconvex Optimization", 2018),
     "Adam whose second moment cannot fall in a hurry."),
    ("adabelief", "AdaBelief", "elementwise", (),
     Paper("AdaBelief Optimizer: Adapting Stepsizes by the Belief in Observed Gradients", 2020, "2010.07468"),
     "Adam that divides by the spread of the gradient about its average."),
    ("adabound", "AdaBound", "elementwise", ("amsbound",),
     Paper("Adaptive Gradient Methods with Dynamic Bound of Learning Rate", 2019, "1902.09843"),
     "Adam whose rates are clipped by bounds that close in on SGD's."),
    ("adamod", "AdaMod", "elementwise", (),
     Paper("An Adaptive and Momental Bound Method for Stochastic Learning", 2019, "1910.12249"),
     "Adam whose rates may not exceed their own moving average."),
    ("adamp", "AdamP", "tensor", (),
     Paper("AdamP: Slowing Down the Slowdown for Momentum Optimizers on Scale-invariant Weights", 2021, "2006.08217"),
     "AdamW without the radial part of updates of scale-invariant weights."),
    ("adai", "Adai", "global", (),
     Paper("Adaptive Inertia: Disentangling the Effects of Adaptive Learning Rate and Momentum", 2022, "2006.15815"),
     "Momentum whose inertia, not whose rate, adapts to each weight."),
    ("adashift", "AdaShift", "tensor", (),
     Paper("AdaShift: Decorrelation and Convergence of Adaptive Learning Rate Methods", 2019, "1810.00143"),
     "Adam whose second moment is made of older gradients."),
    ("adasmooth", "AdaSmooth", "elementwise", (),
     Paper("AdaSmooth: An Adaptive Learning Rate Method based on Effective Ratio", 2022, "2204.00825"),
     "RMSprop whose memory depends on how straight a weight travels."),
    ("adanorm", "AdaNorm", "tensor", ("adamnorm",),
     Paper("AdaNorm: Adaptive Gradient Norm Correction based Optimizer for CNNs", 2023, "2210.06364"),
     "Adam that lengthens short gradients to their usual norm."),
    ("adapnm", "AdaPNM", "elementwise", (),
     Paper("Positive-Negative Momentum: Manipulating Stochastic Gradient Noise to Improve Generalization", 2021, "2103.17182"),
     "Adam with one positive and one negative momentum."),
    ("adatam", "AdaTAM", "tensor", (), Paper("Torque-Aware Momentum", 2024, "2412.18790"),
     "Adam whose momentum damps gradients misaligned with it."),
    ("adan", "Adan", "elementwise", (),
     Paper("Adan: Adaptive Nesterov Momentum Algorithm for Faster Optimizing Deep Models", 2022, "2208.06677"),
     "Adam with Nesterov momentum made of gradient differences."),
    ("adopt", "ADOPT", "elementwise", (),
     Paper("ADOPT: Modified Adam Can Converge with Any β₂ with the Optimal Rate", 2024, "2411.02853"),
     "Adam that divides first, by a second moment without the present gradient."),
    ("laprop", "LaProp", "elementwise", (), Paper("LaProp: Separating Momentum and Adaptivity in Adam", 2020, "2002.04839"),
     "Adam that divides before it averages."),
    ("qhadam", "QHAdam", "elementwise", (),
     Paper("Quasi-hyperbolic momentum and Adam for deep learning", 2019, "1810.06801"),
     "Adam with both moments mixed with their newest term."),
    ("diffgrad", "DiffGrad", "elementwise", (),
     Paper("diffGrad: An Optimization Method for Convolutional Neural Networks", 2020, "1909.11015"),
     "Adam with friction where the gradient hardly changes."),
    ("padam", "Padam", "elementwise", (),
     Paper("Closing the Generalization Gap of Adaptive Gradient Methods in Training Deep Neural Networks", 2018, "1806.06763"),
     "AMSGrad that divides by a smaller power of the second moment."),
)  # fmt: skip
_AS_IN_TORCH = ("adam", "adamw", "adamax", "nadam", "radam", "adagrad", "adadelta", "rmsprop", "rprop")


@hookimpl
def zoo_optimizers() -> Iterator[OptimizerSpec]:
    """Adam and its kin."""
    for name, cls, granularity, aliases, paper, summary in _TABLE:
        target = f"zoo_plugins.adaptive.{name}:{cls}"
        tags = (granularity, *(("torch",) if name in _AS_IN_TORCH else ()))
        yield OptimizerSpec(name, target, family="adaptive", summary=summary, paper=paper, aliases=aliases, tags=tags)
