"""One call of every helper that computes on tensors, so that claims about all of them are tested once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from zoo import helpers
from zoo.helpers import Scalar

SHAPES = [(), (0,), (0, 4), (4, 0), (1,), (1, 1), (5,), (3, 4), (2, 3, 2, 2)]


@dataclass(frozen=True)
class Call:
    """A helper with the tensors and numbers that it takes."""

    name: str
    run: Callable[..., Any]
    tensors: tuple[str, ...]
    """``any``: signed. ``positive``. ``scalar``: 0-dim, positive. ``row``, ``col``: the factored moments."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    changes: tuple[int, ...] = ()
    """Which tensors are changed in place."""
    min_ndim: int = 0

    def __str__(self) -> str:
        return self.name

    def make(self, shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0, scale: float = 1.0) -> list[Tensor]:
        """Fresh arguments for tensors of a shape."""
        generator = torch.Generator().manual_seed(seed)

        def draw(kind: str) -> Tensor:
            size = shape
            if kind == "scalar":
                size = ()
            elif kind == "row":
                size = (*shape[:-1], 1)
            elif kind == "col":
                size = (*shape[:-2], 1, shape[-1])
            x = torch.randn(size, generator=generator, dtype=torch.float64) * scale
            return (x if kind == "any" else x.abs()).to(dtype)

        return [draw(kind) for kind in self.tensors]

    def __call__(self, tensors: list[Tensor], numbers: Mapping[str, Scalar] | None = None) -> list[Tensor]:
        """The helper's results, then the tensors that it changed."""
        result = self.run(*tensors, **(self.numbers if numbers is None else numbers))
        results = list(result) if isinstance(result, tuple) else [] if result is None else [result]
        return results + [tensors[i] for i in self.changes]


def _call(name: str, *tensors: str, changes: tuple[int, ...] = (), min_ndim: int = 0, **numbers: float) -> Call:
    return Call(name, getattr(helpers, name), tensors, numbers, changes, min_ndim)


def _cautious(variant: helpers.CautiousVariant) -> Call:
    def run(update: Tensor, grad: Tensor) -> Tensor:
        return helpers.cautious(update, grad, variant)

    return Call(f"cautious[{variant}]", run, ("any", "any"))


def _decay_of(lr: Scalar, weight_decay: Scalar, ratio: Scalar, param: Tensor) -> Tensor:
    return helpers.decay_(param, helpers.decay_fraction(lr, weight_decay, "decoupled", ratio))


CALLS = [
    _call("ema_", "any", "any", changes=(0,), weight=0.1),
    _call("ema_sq_", "positive", "any", changes=(0,), beta=0.99),
    _call("momentum_", "any", "any", changes=(0,), momentum=0.9, dampening=0.25),
    _call("nesterov", "any", "any", momentum=0.9),
    _call("nesterov_ema", "any", "any", beta=0.95),
    _call("add_", "any", "any", changes=(0,), scale=0.3),
    _call("add_scaled", "any", "any", scale=0.3),
    _call("addcmul_", "any", "any", "any", changes=(0,), scale=0.3),
    Call(
        "addcdiv_",
        lambda x, a, b, scale: helpers.addcdiv_(x, a, b + 0.5, scale),
        ("any", "any", "positive"),
        {"scale": 0.3},
        (0,),
    ),
    _call("l2_decay", "any", "any", weight_decay=0.1),
    _call("decay_", "any", changes=(0,), fraction=0.01),
    Call(
        "decay_fraction",
        lambda p, lr, weight_decay, ratio: _decay_of(lr, weight_decay, ratio, p),
        ("any",),
        {"lr": 0.1, "weight_decay": 0.2, "ratio": 0.5},
        (0,),
    ),
    _call("cautious_decay", "any", "any", fraction=0.01),
    _cautious("mean"),
    _cautious("count"),
    _cautious("plain"),
    _cautious("grams"),
    _call("signs_agree", "any", "any"),
    _call("ams_bound_", "positive", "positive", changes=(0,)),
    _call("adam_denominator", "positive", bias_correction=0.3, eps=1e-4, sqrt_eps=1e-6),
    _call("root_plus", "positive", scale=0.3, eps=1e-4),
    _call("adaptive_clip", "any", "any", clip=0.3, eps=1e-3),
    _call("clip_by_norm", "any", max_norm=0.7),
    _call("clip_by_value", "any", limit=0.7),
    _call("clip_ratio", "positive", bound=0.7),
    _call("unit_norm", "any"),
    _call("rms", "any"),
    _call("rms_clip", "any", threshold=0.8, lr=0.7),
    _call("stable_divisor", "any", "positive", eps=1e-4),
    _call("trust_ratio", "any", "any", lr=0.7, lower=0.1, upper=10.0),
    _call("orthograd", "any", "any", eps=1e-30),
    _call("adanorm_", "any", "scalar", changes=(1,), gamma=0.95),
    _call("centralize", "any"),
    _call("factored_ema_", "row", "col", "any", changes=(0, 1), min_ndim=2, weight=0.1, eps=1e-6),
    _call("factored_moment", "row", "col", min_ndim=2),
    _call("factored_rsqrt", "row", "col", min_ndim=2, eps=1e-3),
    _call("newton_schulz", "any", min_ndim=2),
    _call("polar_express", "any", min_ndim=2),
    _call("project_scale_invariant", "any", "any", "any", delta=0.1, wd_ratio=0.1, eps=1e-8),
    _call("kahan_sub_", "any", "any", "any", "any", changes=(0, 3)),
    _call("maximize", "any"),
]
