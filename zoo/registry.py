"""Optimizers by name: look-ups, listing, creation. Metadata only until an optimizer is used."""

from __future__ import annotations

import difflib
import importlib
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from .errors import AmbiguousOptimizerError, PluginError, UnknownOptimizerError
from .plugins import Plugin, load_plugins
from .spec import OptimizerSpec

if TYPE_CHECKING:
    import torch

    from .config import OptimizerConfig
    from .optimizer import BaseOptimizer

__all__ = [
    "clashes",
    "create_optimizer",
    "list_optimizers",
    "optimizer_class",
    "optimizer_config",
    "optimizer_spec",
    "plugins",
    "register",
    "registered",
    "unregister",
]

HERE = "runtime"
"""The owner of what was registered in this process."""


class _Registry:
    """What there is, found at the first look-up."""

    def __init__(self) -> None:
        self.plugins = load_plugins()
        self.by_name: dict[str, dict[str, OptimizerSpec]] = {}
        for plugin in self.plugins:
            for spec in plugin.specs:
                self.add(spec, plugin.distribution)
        broken = [plugin for plugin in self.plugins if plugin.state == "broken"]
        if broken:
            listed = "; ".join(f"{plugin.name} of {plugin.distribution} ({plugin.cause})" for plugin in broken)
            warnings.warn(f"zoo: plugins that could not be loaded: {listed}; `zoo doctor` tells more", stacklevel=4)

    def add(self, spec: OptimizerSpec, owner: str) -> None:
        for name in {_normalised(spec.name), *map(_normalised, spec.aliases)}:
            self.by_name.setdefault(name, {})[owner] = spec

    def remove(self, spec: OptimizerSpec, owner: str) -> None:
        for name in {_normalised(spec.name), *map(_normalised, spec.aliases)}:
            owners = self.by_name.get(name, {})
            owners.pop(owner, None)
            if not owners:
                self.by_name.pop(name, None)

    def specs(self) -> list[OptimizerSpec]:
        unique = {id(spec): spec for owners in self.by_name.values() for spec in owners.values()}
        return sorted(unique.values(), key=lambda spec: spec.name)


_found: list[_Registry] = []


def _registry() -> _Registry:
    if not _found:
        _found.append(_Registry())
    return _found[0]


def _normalised(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def plugins() -> list[Plugin]:
    """Every installed plugin: distribution, version, state, and the cause where it is broken."""
    return list(_registry().plugins)


def clashes() -> dict[str, list[str]]:
    """Names that several distributions have, with their owners."""
    return {
        name: sorted(owners)
        for name, owners in _registry().by_name.items()
        if len({id(spec) for spec in owners.values()}) > 1
    }


def optimizer_spec(name: str) -> OptimizerSpec:
    """The spec of this name or alias; ``distribution:name`` picks one where several have the name.

    Case does not matter, and ``-``, ``_`` and space are the same.

    Raises:
        UnknownOptimizerError: nothing has this name; the closest names are given.
        AmbiguousOptimizerError: several distributions have it.
    """
    registry = _registry()
    owner, _, plain = name.rpartition(":")
    owners = registry.by_name.get(_normalised(plain), {})
    if owner:
        owners = {key: spec for key, spec in owners.items() if _normalised(key) == _normalised(owner)}
    if not owners:
        names = sorted({spec.name for spec in registry.specs()})
        # Close to an alias is close to its optimizer.
        near = difflib.get_close_matches(_normalised(plain), registry.by_name, n=8, cutoff=0.0)
        closest = list(dict.fromkeys(next(iter(registry.by_name[key].values())).name for key in near))[:3] or names[:3]
        broken = [plugin.name for plugin in registry.plugins if plugin.state == "broken"]
        raise UnknownOptimizerError(name, closest, broken)
    if len({id(spec) for spec in owners.values()}) > 1:
        raise AmbiguousOptimizerError(plain, sorted(owners))
    return next(iter(owners.values()))


def list_optimizers(pattern: str | None = None, *, family: str | None = None, tag: str | None = None) -> list[str]:
    """The sorted names of the optimizers that there are.

    Args:
        pattern: names to list, with wildcards such as ``"*adam*"``.
        family: only this family.
        tag: only optimizers with this tag.
    """
    wanted = None if pattern is None else _normalised(pattern)
    return sorted(
        {
            spec.name
            for spec in _registry().specs()
            if (wanted is None or fnmatchcase(spec.name, wanted))
            and (family is None or spec.family == family)
            and (tag is None or tag in spec.tags)
        }
    )


def optimizer_class(name: str) -> type[BaseOptimizer[Any]]:
    """The class of this name, imported now if it was not.

    Raises:
        PluginError: the class can't be imported, or is no optimizer of the zoo.
    """
    spec = optimizer_spec(name)
    module, _, attribute = spec.target.partition(":")
    try:
        cls = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        owners = [owner for owner, found in _registry().by_name[_normalised(spec.name)].items() if found is spec]
        raise PluginError(
            f"optimizer {spec.name!r} of {', '.join(owners)} can't be loaded from {spec.target!r}: {error}"
        ) from error
    from .optimizer import BaseOptimizer

    if not (isinstance(cls, type) and issubclass(cls, BaseOptimizer)):
        raise PluginError(f"optimizer {spec.name!r}: {spec.target} is no zoo.BaseOptimizer")
    cls.registered_name = spec.name  # what its messages call it
    return cls


def optimizer_config(name: str) -> type[OptimizerConfig]:
    """The pydantic model of this optimizer's options."""
    return optimizer_class(name).Config


def create_optimizer(name: str | Mapping[str, Any], params: Any, **cfg: Any) -> torch.optim.Optimizer:
    """The optimizer of this name for ``params``.

    Args:
        name: a name or alias, or a mapping with the key ``name`` and options, such as a node of a config file.
        params: what torch accepts, or a module: its parameters that require grad, with their names.
        cfg: the optimizer's options; they win over those of a mapping.

    Raises:
        UnknownOptimizerError: nothing has this name.
        pydantic.ValidationError: an unknown or out-of-range option; a ``ValueError``.
    """
    if isinstance(name, Mapping):
        options = {str(key): value for key, value in name.items()}
        if "name" not in options:
            raise ValueError(f"a mapping for create_optimizer needs the key 'name', not only {sorted(options)}")
        return create_optimizer(options.pop("name"), params, **{**options, **cfg})
    cls = optimizer_class(name)
    module = sys.modules["torch.nn"]  # the class is torch's, so torch is here
    if isinstance(params, module.Module):
        params = [(key, p) for key, p in params.named_parameters() if p.requires_grad]
    return cls(params, **cfg)


def register(spec: OptimizerSpec) -> OptimizerSpec:
    """Make an optimizer known in this process, for notebooks and tests; the same spec again changes nothing.

    Raises:
        ValueError: another optimizer has the name or an alias.
    """
    registry = _registry()
    for name in {_normalised(spec.name), *map(_normalised, spec.aliases)}:
        for owner, known in registry.by_name.get(name, {}).items():
            if known != spec:
                raise ValueError(f"{name!r} is already an optimizer of {owner}; unregister it or choose another name")
    registry.add(spec, HERE)
    return spec


def unregister(name: str) -> None:
    """Forget an optimizer that :func:`register` made known.

    Raises:
        KeyError: no optimizer of this name was registered in this process.
    """
    spec = _registry().by_name.get(_normalised(name), {}).get(HERE)
    if spec is None:
        raise KeyError(f"{name!r} was not registered in this process")
    _registry().remove(spec, HERE)


@contextmanager
def registered(spec: OptimizerSpec) -> Iterator[OptimizerSpec]:
    """Make an optimizer known inside a ``with`` block."""
    register(spec)
    try:
        yield spec
    finally:
        unregister(spec.name)
