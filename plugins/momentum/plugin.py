"""The momentum family: what the registry lists."""

from __future__ import annotations

from collections.abc import Iterator

from zoo import OptimizerSpec, Paper, hookimpl

_A2GRAD = Paper("Optimal Adaptive and Accelerated Stochastic Gradient Descent", 2018, "1810.00553")
_MADGRAD = Paper(
    "Adaptivity without Compromise: A Momentumized, Adaptive, Dual Averaged Gradient Method for Stochastic Optimization",
    2022,
    "2101.11075",
)

_TABLE = (
    ("sgd", "SGD", "elementwise", ("momentum", "nesterov"),
     Paper("On the importance of initialization and momentum in deep learning", 2013),
     "Stochastic gradient descent with heavy-ball or Nesterov momentum."),
    ("sgdw", "SGDW", "elementwise", (), Paper("Decoupled Weight Decay Regularization", 2019, "1711.05101"),
     "SGD with decoupled weight decay."),
    ("sgdp", "SGDP", "tensor", (),
     Paper("AdamP: Slowing Down the Slowdown for Momentum Optimizers on Scale-invariant Weights", 2021, "2006.08217"),
     "SGD without the radial part of updates of scale-invariant weights."),
    ("asgd", "ASGD", "tensor", ("averaged_sgd",),
     Paper("Acceleration of stochastic approximation by averaging", 1992, doi="10.1137/0330046"),
     "SGD with a falling step size, and the average of its iterates."),
    ("accsgd", "AccSGD", "elementwise", (),
     Paper("On the insufficiency of existing momentum schemes for Stochastic Optimization", 2018, "1803.05591"),
     "Accelerated SGD from coupled long and short steps."),
    ("aggmo", "AggMo", "elementwise", (),
     Paper("Aggregated Momentum: Stability Through Passive Damping", 2019, "1804.00325"),
     "The mean of several momenta of different damping."),
    ("qhm", "QHM", "elementwise", (), Paper("Quasi-hyperbolic momentum and Adam for deep learning", 2019, "1810.06801"),
     "A weighted mean of plain SGD and momentum."),
    ("pid", "PID", "elementwise", (),
     Paper("A PID Controller Approach for Stochastic Optimization of Deep Networks", 2018, doi="10.1109/CVPR.2018.00889"),
     "SGD with integral (momentum) and derivative terms."),
    ("pnm", "PNM", "elementwise", (),
     Paper("Positive-Negative Momentum: Manipulating Stochastic Gradient Noise to Improve Generalization", 2021, "2103.17182"),
     "Momentum of alternate steps, one positive and one negative."),
    ("tam", "TAM", "tensor", ("torque_aware_momentum",), Paper("Torque-Aware Momentum", 2024, "2412.18790"),
     "Momentum that damps gradients misaligned with it."),
    ("signsgd", "SignSGD", "elementwise", ("signum",),
     Paper("signSGD: Compressed Optimisation for Non-Convex Problems", 2018, "1802.04434"),
     "Steps by the sign of the gradient or of its moving average."),
    ("sgd_sai", "SGDSaI", "tensor", ("sgdsai",),
     Paper("No More Adam: Learning Rate Scaling at Initialization is All You Need", 2024, "2412.11768"),
     "SGD scaled once per tensor by the first gradient's signal-to-noise ratio."),
    ("lars", "LARS", "tensor", (), Paper("Large Batch Training of Convolutional Networks", 2017, "1708.03888"),
     "SGD with layer-wise adaptive rates, for large batches."),
    ("fromage", "Fromage", "tensor", (),
     Paper("On the distance between two neural networks and the stability of learning", 2020, "2002.03432"),
     "Every layer moves by a fixed share of its norm."),
    ("nero", "Nero", "tensor", (),
     Paper("Learning by Turning: Neural Architecture Aware Optimisation", 2021, "2102.07227"),
     "Every neuron turns by a like angle, on the sphere of balanced neurons."),
    ("gravity", "Gravity", "tensor", (),
     Paper("Gravity Optimizer: a Kinematic Approach on Optimization in Deep Learning", 2021, "2101.09192"),
     "A ball on a slope: velocity from a bounded function of the gradient."),
    ("srmm", "SRMM", "elementwise", (),
     Paper("Stochastic regularized majorization-minimization with weakly convex and multi-convex surrogates", 2022, "2201.01652"),
     "SGD with gradients and iterates averaged."),
    ("ftrl", "FTRL", "elementwise", ("ftrl_proximal",),
     Paper("Ad Click Prediction: a View from the Trenches", 2013, doi="10.1145/2487575.2488200"),
     "Follow the regularized leader, with exact zeros by L1."),
    ("swats", "SWATS", "global", (),
     Paper("Improving Generalization Performance by Switching from Adam to SGD", 2017, "1712.07628"),
     "Adam that switches to SGD when its equivalent rate has settled."),
    ("kate", "KATE", "elementwise", (),
     Paper("Remove that Square Root: A New Efficient Scale-Invariant Version of AdaGrad", 2024, "2403.02648"),
     "Scale-invariant AdaGrad without the square root."),
    ("madgrad", "MADGRAD", "elementwise", (), _MADGRAD, "Momentumized dual averaging over a cube root."),
    ("mirror_madgrad", "MirrorMADGRAD", "elementwise", (), _MADGRAD, "MADGRAD by mirror descent, for large models."),
    ("a2grad_uni", "A2GradUni", "elementwise", ("a2grad",), _A2GRAD, "Accelerated SGD adapting to uniformly summed noise."),
    ("a2grad_inc", "A2GradInc", "elementwise", (), _A2GRAD, "Accelerated SGD adapting to noise of increasing weight."),
    ("a2grad_exp", "A2GradExp", "elementwise", (), _A2GRAD, "Accelerated SGD adapting to a moving average of the noise."),
)  # fmt: skip
_AS_IN_TORCH = ("sgd", "asgd")


@hookimpl
def zoo_optimizers() -> Iterator[OptimizerSpec]:
    """SGD and its kin."""
    for name, cls, granularity, aliases, paper, summary in _TABLE:
        target = f"zoo_plugins.momentum.{name}:{cls}"
        tags = (granularity, *(("torch",) if name in _AS_IN_TORCH else ()))
        yield OptimizerSpec(name, target, family="momentum", summary=summary, paper=paper, aliases=aliases, tags=tags)
