"""Finding optimizers by name: entry points, specs, look-ups."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import pluggy

from . import hookspecs
from .errors import UnknownOptimizerError
from .spec import OptimizerSpec

if TYPE_CHECKING:
    import torch

    from .config import OptimizerConfig
    from .optimizer import BaseOptimizer

__all__ = ["create_optimizer", "list_optimizers", "optimizer_class", "optimizer_config", "optimizer_spec"]

_specs: dict[str, OptimizerSpec] = {}


def _normalised(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _load() -> dict[str, OptimizerSpec]:
    if not _specs:
        manager = pluggy.PluginManager("zoo")
        manager.add_hookspecs(hookspecs)
        for entry in sorted(entry_points(group="zoo.plugins")):
            manager.register(entry.load(), entry.name)
        for specs in manager.hook.zoo_optimizers():
            for spec in specs:
                _specs[spec.name] = spec
    return _specs


def optimizer_spec(name: str) -> OptimizerSpec:
    """The spec of this name or alias."""
    specs, wanted = _load(), _normalised(name)
    if wanted in specs:
        return specs[wanted]
    for spec in specs.values():
        if wanted in map(_normalised, spec.aliases):
            return spec
    import difflib

    raise UnknownOptimizerError(name, difflib.get_close_matches(wanted, specs, n=3, cutoff=0.0))


def list_optimizers(pattern: str | None = None, *, family: str | None = None, tag: str | None = None) -> list[str]:
    """Sorted names; ``pattern`` may hold wildcards."""
    return sorted(
        spec.name
        for spec in _load().values()
        if (pattern is None or fnmatchcase(spec.name, _normalised(pattern)))
        and (family is None or spec.family == family)
        and (tag is None or tag in spec.tags)
    )


def optimizer_class(name: str) -> type[BaseOptimizer[Any]]:
    """The class of this name, imported now if it was not."""
    module, _, attribute = optimizer_spec(name).target.partition(":")
    cls: type[BaseOptimizer[Any]] = getattr(importlib.import_module(module), attribute)
    return cls


def optimizer_config(name: str) -> type[OptimizerConfig]:
    """The pydantic model of this optimizer's options."""
    return optimizer_class(name).Config


def create_optimizer(name: str | Mapping[str, Any], params: Any, **cfg: Any) -> torch.optim.Optimizer:
    """The optimizer of this name for ``params``."""
    if isinstance(name, Mapping):
        options = dict(name)
        return create_optimizer(options.pop("name"), params, **{**options, **cfg})
    cls = optimizer_class(name)
    module = sys.modules.get("torch.nn")
    if module is not None and isinstance(params, module.Module):
        params = [(n, p) for n, p in params.named_parameters() if p.requires_grad]
    return cls(params, **cfg)
