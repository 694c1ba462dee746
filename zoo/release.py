"""Gradient release: each parameter is stepped inside backward, and its gradient freed at once."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from .optimizer import BaseOptimizer

__all__ = ["GradientRelease", "release_gradients"]


class GradientRelease:
    """Steps parameters during backward until :meth:`remove` is called, or the ``with`` block ends."""

    def __init__(self, opt: BaseOptimizer[Any], every: int) -> None:
        self._opt = opt
        self._every = every
        self._seen: dict[Tensor, int] = {}
        self._handles: list[RemovableHandle] = []
        for group in opt.param_groups:
            for p in group["params"]:
                if p.requires_grad:
                    self._handles.append(p.register_post_accumulate_grad_hook(self._ready))

    def _ready(self, p: Tensor) -> None:
        seen = self._seen[p] = self._seen.get(p, 0) + 1
        if seen % self._every == 0:
            self._opt.step_parameter(p)
            p.grad = None

    def remove(self) -> None:
        """Stop stepping in backward; gradients accumulate in ``.grad`` again and ``step()`` takes the steps."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def __enter__(self) -> GradientRelease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


def release_gradients(opt: torch.optim.Optimizer, *, every: int = 1) -> GradientRelease:
    """Step each parameter of ``opt`` as soon as backward has its gradient, then free the gradient.

    At no time do all gradients exist: the memory of a full set of gradients is saved. ``opt.step()`` finds no
    gradients and does nothing (call it all the same where a scheduler expects it). Clip with the options
    ``clip_norm``, ``clip_value`` or ``agc``: a norm over all gradients is never known.

    Args:
        opt: an optimizer of the zoo whose rule needs no view of all parameters.
        every: step at every n-th backward pass; gradients accumulate in ``.grad`` in between.

    Raises:
        TypeError: for an optimizer that is not of the zoo.
        ValueError: for a rule that needs all gradients or a closure, for ``skip_nonfinite`` (which decides over
            all gradients), or for ``every`` below 1.
    """
    if not isinstance(opt, BaseOptimizer):
        raise TypeError(f"release_gradients needs an optimizer of the zoo, not {type(opt).__name__}")
    name = type(opt).__name__.lower()
    if every < 1:
        raise ValueError(f"every must be at least 1, not {every}")
    if not opt.capabilities.gradient_release:
        raise ValueError(
            f"{name} needs all gradients at once (or a closure): its gradients can't be released one by one"
        )
    if any(group["skip_nonfinite"] for group in opt.param_groups):
        raise ValueError(f"{name}: skip_nonfinite decides over all gradients; switch it off to release them one by one")
    return GradientRelease(opt, every)
