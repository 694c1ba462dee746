"""What is written once around every rule: gradient slots → rule → update slots → apply.

    gradient   maximize → L2 decay → centralize → clip (AGC, norm, value) → orthograd
    rule       the optimizer's own lines
    update     rms clip → trust ratio → cautious mask
    apply      decoupled, independent or cautious decay → plain, Kahan or stochastically rounded subtraction

A :class:`Pipeline` is a frozen value without tensors or numbers: which slots are on around which rule. Two
optimizers with equal pipelines share a compiled kernel. The numbers arrive in :class:`Scalars`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch
from torch import Tensor

from . import helpers
from .granularity import Granularity

if TYPE_CHECKING:
    from .config import OptimizerConfig

__all__ = ["Pipeline", "Rule", "Scalars", "Slots", "State", "compute_dtype"]

Scalar = float | Tensor


class _Namespace:
    """Named values. A plain class and not SimpleNamespace, because torch.compile can trace it."""

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


class Scalars(_Namespace):
    """The numbers of one step, by name: the rule's options and what its ``scalars`` returned.

    Numbers are Python floats in the eager engines and 0-dim tensors in the compiled one and under
    ``capturable``; bools, ints, text and None are the same everywhere, so a rule may branch on them.
    """


class State(_Namespace):
    """The state tensors of one parameter (or block, or list of parameters), by name; changed in place or rebound."""


class Rule(Protocol):
    """The part of an optimizer that an engine runs."""

    def update(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Tensor | helpers.Scaled:
        """What to subtract from ``p``; changes ``s`` in place, leaves ``g`` and ``p`` alone."""
        ...

    def reduce(self, g: Tensor, p: Tensor, s: State, c: Scalars) -> Mapping[str, Tensor]:
        """Sums over the elements of ``p``, added up over all parameters before any is updated (global rules)."""
        ...


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which a rule computes for parameters of ``dtype``: float32 for half precision, else the same."""
    return torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype


@dataclass(frozen=True)
class Slots:
    """Which slots of the pipeline are on."""

    maximize: bool = False
    l2: bool = False
    centralize: bool = False
    agc: bool = False
    clip_norm: bool = False
    clip_value: bool = False
    orthograd: bool = False
    rms_clip: bool = False
    trust_ratio: bool = False
    cautious: Literal["mean", "count", "plain", "grams"] | None = None
    decay: bool = False
    cautious_decay: bool = False
    rounding: Literal["kahan", "stochastic"] | None = None

    @classmethod
    def of(cls, cfg: OptimizerConfig, decay_mode: str) -> Slots:
        """The slots that ``cfg`` switches on, with the rule's own ``decay_mode``."""
        decays = _nonzero(cfg.weight_decay)
        return cls(
            maximize=cfg.maximize,
            l2=decays and decay_mode == "l2",
            centralize=cfg.centralize,
            agc=cfg.agc is not None,
            clip_norm=cfg.clip_norm is not None,
            clip_value=cfg.clip_value is not None,
            orthograd=cfg.orthograd,
            rms_clip=cfg.rms_clip is not None,
            trust_ratio=cfg.trust_ratio,
            cautious=("mean" if cfg.cautious is True else cfg.cautious or None),
            decay=decays and decay_mode in ("decoupled", "independent"),
            cautious_decay=cfg.cautious_weight_decay,
            rounding=cfg.low_precision,
        )


def _nonzero(value: Any) -> bool:
    return isinstance(value, Tensor) or value != 0


@dataclass(frozen=True)
class Pipeline:
    """A rule and the slots around it, at the granularity that both together need."""

    rule: Rule
    slots: Slots
    granularity: Granularity

    def gradient(self, g: Tensor, p: Tensor, c: Scalars) -> Tensor:
        """The gradient as the rule sees it; the caller's tensor is never written to."""
        on = self.slots
        if on.maximize:
            g = -g
        if on.l2:
            g = helpers.l2_decay(g, p, c.weight_decay)
        if on.centralize:
            g = helpers.centralize(g)
        if on.agc:
            g = helpers.adaptive_clip(g, p, c.agc)
        if on.clip_norm:
            g = helpers.clip_by_norm(g, c.clip_norm)
        if on.clip_value:
            g = helpers.clip_by_value(g, c.clip_value)
        if on.orthograd:
            g = helpers.orthograd(g, p)
        return g

    def __call__(self, target: Tensor, p: Tensor, g: Tensor, s: State, c: Scalars, noise: Tensor | None = None) -> None:
        """One step of one tensor (or block, or list of tensors).

        Args:
            target: the parameter as stored, written to.
            p: the same values in the dtype of the computation; the same object where that is ``target``'s dtype.
            g: the gradient in the dtype of the computation, not written to.
            s: the state in the dtype of the computation, written to or rebound.
            c: the scalars of this step.
            noise: int32 in [0, 2¹⁶) a parameter element, for stochastic rounding.
        """
        on = self.slots
        # Where autograd flows, what the rule read must not be overwritten by the step that it leads to.
        read = p.clone() if torch.is_grad_enabled() else p
        g = self.gradient(g, read, c)
        update = self.rule.update(g, read, s, c)
        if isinstance(update, helpers.Scaled):
            if self._subtracts_at_once:
                self._decay_(p, c)
                update.subtract_from_(p)
                self._write(target, p, noise)
                return
            update = update.tensor()
        if on.rms_clip:
            update = helpers.rms_clip(update, c.rms_clip, c.lr)
        if on.trust_ratio:
            update = update * helpers.trust_ratio(read, update, c.lr)
        if on.cautious is not None:
            update = helpers.cautious(update, g, on.cautious)
        self._apply(target, p, update, s, c, noise)

    @property
    def _subtracts_at_once(self) -> bool:
        """Whether nothing looks at the update between the rule and the parameter."""
        on = self.slots
        looked_at = on.rms_clip or on.trust_ratio or on.cautious is not None or on.cautious_decay
        return not looked_at and on.rounding != "kahan"

    def reduce(self, p: Tensor, g: Tensor, s: State, c: Scalars) -> Mapping[str, Tensor]:
        """The rule's sums over this tensor or block (first phase of a global rule)."""
        return self.rule.reduce(self.gradient(g, p, c), p, s, c)

    def _apply(self, target: Tensor, p: Tensor, update: Tensor, s: State, c: Scalars, noise: Tensor | None) -> None:
        on = self.slots
        if on.decay and on.cautious_decay:
            update = update + helpers.cautious_decay(p, update, c.decay)
        if on.rounding == "kahan":
            if on.decay and not on.cautious_decay:
                update = update + p * c.decay
            helpers.kahan_sub_(target, p, update, s.kahan_compensation)
            return
        if not on.cautious_decay:
            self._decay_(p, c)
        p.sub_(update)
        self._write(target, p, noise)

    def _decay_(self, p: Tensor, c: Scalars) -> None:
        if self.slots.decay:
            p.mul_(1 - c.decay)

    def _write(self, target: Tensor, p: Tensor, noise: Tensor | None) -> None:
        """Bring the parameter into its storage dtype."""
        if target is p:
            return
        if self.slots.rounding == "stochastic" and noise is not None:
            helpers.stochastic_round_(target, p, noise)
        else:
            target.copy_(p)
