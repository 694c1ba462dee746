"""The optimizer zoo: any PyTorch optimizer by name. Importing this imports no torch."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_EXPORTS = {
    "BaseOptimizer": "zoo.optimizer",
    "Granularity": "zoo.granularity",
    "OptimizerConfig": "zoo.config",
    "OptimizerSpec": "zoo.spec",
    "Paper": "zoo.spec",
    "Scalars": "zoo.pipeline",
    "State": "zoo.pipeline",
    "UnknownOptimizerError": "zoo.errors",
    "unregister": "zoo.registry",
    "AmbiguousOptimizerError": "zoo.errors",
    "PluginError": "zoo.errors",
    "ParameterGroupError": "zoo.errors",
    "RegistryFileError": "zoo.errors",
    "create_optimizer": "zoo.registry",
    "from_config": "zoo.registry",
    "hookimpl": "zoo.hookspecs",
    "list_optimizers": "zoo.registry",
    "optimizer_class": "zoo.registry",
    "optimizer_config": "zoo.registry",
    "optimizer_spec": "zoo.registry",
    "register": "zoo.registry",
    "registered": "zoo.registry",
    "release_gradients": "zoo.release",
    "set_default_engine": "zoo.engines",
}

if TYPE_CHECKING:
    from . import helpers as helpers
    from .config import OptimizerConfig as OptimizerConfig
    from .engines import set_default_engine as set_default_engine
    from .errors import AmbiguousOptimizerError as AmbiguousOptimizerError
    from .errors import ParameterGroupError as ParameterGroupError
    from .errors import PluginError as PluginError
    from .errors import RegistryFileError as RegistryFileError
    from .errors import UnknownOptimizerError as UnknownOptimizerError
    from .granularity import Granularity as Granularity
    from .hookspecs import hookimpl as hookimpl
    from .optimizer import BaseOptimizer as BaseOptimizer
    from .pipeline import Scalars as Scalars
    from .pipeline import State as State
    from .registry import create_optimizer as create_optimizer
    from .registry import from_config as from_config
    from .registry import list_optimizers as list_optimizers
    from .registry import optimizer_class as optimizer_class
    from .registry import optimizer_config as optimizer_config
    from .registry import optimizer_spec as optimizer_spec
    from .registry import register as register
    from .registry import registered as registered
    from .registry import unregister as unregister
    from .release import release_gradients as release_gradients
    from .spec import OptimizerSpec as OptimizerSpec
    from .spec import Paper as Paper

__all__ = sorted([*_EXPORTS, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "helpers":
        return importlib.import_module("zoo.helpers")
    if name not in _EXPORTS:
        raise AttributeError(f"module 'zoo' has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return __all__
