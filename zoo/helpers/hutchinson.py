"""Hutchinson's estimate of the Hessian's diagonal. AdaHessian, arXiv:2006.00719; Sophia, arXiv:2305.14342.

diag(H) = E[z∘Hz] for random z with independent entries of mean 0 and variance 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

__all__ = [
    "Distribution",
    "assign_hessian",
    "detach_grads_",
    "gaussian_like",
    "hutchinson_hessian",
    "rademacher_like",
]

Distribution = Literal["rademacher", "gaussian"]
"""``rademacher``: ±1 with equal chance, of the least variance. ``gaussian``: standard normal."""


def rademacher_like(x: Tensor, generator: torch.Generator) -> Tensor:
    """+1 or −1 with equal chance, in the shape, dtype and device of ``x``."""
    bits = torch.randint(0, 2, x.shape, generator=generator, device=generator.device, dtype=torch.int8)
    return (bits * 2 - 1).to(x.device, x.dtype)


def gaussian_like(x: Tensor, generator: torch.Generator) -> Tensor:
    """Standard normal numbers in the shape, dtype and device of ``x``."""
    draws = torch.randn(x.shape, generator=generator, device=generator.device, dtype=torch.float32)
    return draws.to(x.device, x.dtype)


def hutchinson_hessian(
    params: Sequence[Tensor],
    grads: Sequence[Tensor | None],
    *,
    generator: torch.Generator,
    samples: int = 1,
    distribution: Distribution = "rademacher",
    allow_linear: bool = False,
    retain_graph: bool = False,
) -> list[Tensor | None]:
    """The mean of z∘Hz over the samples: an estimate of the diagonal of the Hessian, a tensor a parameter.

    Exact with one Rademacher sample where the Hessian is diagonal. The graph of the gradients is freed with
    the last sample; gradients and parameters are left as they are (see :func:`detach_grads_`).

    Args:
        params: the parameters.
        grads: their gradients in the same order, made with ``create_graph=True``; None for those without.
        generator: draws z; the global random state is not touched. Its device need not be the parameters'.
        samples: how many z; the variance falls with their number.
        distribution: of z.
        allow_linear: let a gradient without a graph stand for a parameter that the loss is linear in: its row
            of the Hessian is zero.
        retain_graph: keep the graph for another call, over other parameters of the same backward pass.

    Returns:
        A list as long as ``params``: None where the gradient is None; zeros where no gradient depends on it.

    Raises:
        RuntimeError: for frozen or complex parameters, and for sparse or graph-less gradients.
        ValueError: for lists of different lengths, fewer than one sample or an unknown distribution.
    """
    if len(params) != len(grads):
        raise ValueError(f"hutchinson_hessian: {len(params)} parameters but {len(grads)} gradients; use None for none")
    if samples < 1:
        raise ValueError(f"hutchinson_hessian: samples must be at least 1, got {samples}")
    if distribution not in ("rademacher", "gaussian"):
        raise ValueError(f"hutchinson_hessian: distribution must be 'rademacher' or 'gaussian', got {distribution!r}")
    draw = rademacher_like if distribution == "rademacher" else gaussian_like

    indices = [i for i, grad in enumerate(grads) if grad is not None]
    with_grad = [(params[i], grad) for i, grad in enumerate(grads) if grad is not None]
    for i, (param, grad) in zip(indices, with_grad, strict=True):
        _check(i, param, grad, allow_linear)
    estimates: list[Tensor | None] = [None] * len(params)
    inputs = [param for param, _ in with_grad]
    outputs = [grad for _, grad in with_grad if grad.requires_grad]
    with torch.no_grad():
        totals = [torch.zeros_like(param) for param in inputs]
        for sample in range(samples if outputs else 0):
            draws = [draw(param, generator) for param in inputs]
            products = torch.autograd.grad(
                outputs,
                inputs,
                grad_outputs=[z for z, (_, grad) in zip(draws, with_grad, strict=True) if grad.requires_grad],
                retain_graph=retain_graph or sample < samples - 1,
                allow_unused=True,
            )
            for total, z, product in zip(totals, draws, products, strict=True):
                if product is not None:
                    total.addcmul_(z, product)
        for i, total in zip(indices, totals, strict=True):
            estimates[i] = total.div_(samples)
    return estimates


def _check(index: int, param: Tensor, grad: Tensor, allow_linear: bool) -> None:
    name = f"hutchinson_hessian: parameter {index} of shape {tuple(param.shape)}"
    if not param.requires_grad:
        raise RuntimeError(f"{name} has a gradient but is frozen (requires_grad=False); pass None as its gradient")
    if param.is_complex():
        raise RuntimeError(f"{name} is complex; the Hessian's diagonal is estimated for real parameters only")
    if grad.layout != torch.strided:
        raise RuntimeError(f"{name} has a sparse gradient, which has no second derivative; make it dense")
    if not grad.requires_grad and not allow_linear:
        raise RuntimeError(
            f"{name} has a gradient without a graph: call backward(create_graph=True) and do not detach the "
            "gradient (if the loss is linear in this parameter, pass allow_linear=True)"
        )


def assign_hessian(
    params: Sequence[Tensor], hessian: Mapping[Tensor, Tensor] | Sequence[Tensor | None]
) -> list[Tensor | None]:
    """A Hessian computed elsewhere, aligned with the parameters: every entry with its own, gradient or not.

    Args:
        params: all parameters, also those that have no gradient now.
        hessian: a mapping from the parameter itself (by identity), or a sequence with one entry a parameter.

    Returns:
        A list as long as ``params``; None for a parameter that has no entry.

    Raises:
        ValueError: if a sequence is not as long as ``params``, a mapping has keys that are no parameters, or
            an entry's shape is not its parameter's.
    """
    if isinstance(hessian, Mapping):
        by_id = {id(key): value for key, value in hessian.items()}
        strangers = len(by_id.keys() - {id(param) for param in params})
        if strangers:
            raise ValueError(
                f"assign_hessian: {strangers} of {len(by_id)} keys are none of the {len(params)} parameters"
            )
        entries = [by_id.get(id(param)) for param in params]
    else:
        entries = list(hessian)
        if len(entries) != len(params):
            raise ValueError(
                f"assign_hessian: {len(entries)} entries for {len(params)} parameters; "
                "give one a parameter, None for those without (a parameter without a gradient counts too)"
            )
    for index, (param, entry) in enumerate(zip(params, entries, strict=True)):
        if entry is not None and entry.shape != param.shape:
            raise ValueError(f"assign_hessian: entry {index} has shape {tuple(entry.shape)}, not {tuple(param.shape)}")
    return entries


def detach_grads_(params: Sequence[Tensor]) -> None:
    """Cut every ``.grad`` from its graph in place, or parameter and graph keep each other alive for ever."""
    for param in params:
        if param.grad is not None:
            param.grad.detach_()
