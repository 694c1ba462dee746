"""Plugins: found through entry points, loaded one by one, and never able to break one another."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

import pluggy

from . import hookspecs
from .spec import OptimizerSpec

__all__ = ["GROUP", "Plugin", "load_plugins"]

GROUP = "zoo.plugins"


@dataclass
class Plugin:
    """One plugin and how it fared.

    Args:
        name: the entry point's name.
        distribution: the package that it came with.
        version: of that package.
        target: the module or object that the entry point names.
        state: "ok", or "broken" with a cause and a remedy.
        specs: the optimizers that it brings.
    """

    name: str
    distribution: str
    version: str
    target: str
    state: Literal["ok", "broken"] = "ok"
    cause: str = ""
    remedy: str = ""
    specs: list[OptimizerSpec] = field(default_factory=list)


def load_plugins() -> list[Plugin]:
    """Load every installed plugin, in the order of distribution and name.

    A plugin that raises, exits, prints or returns something else than specs is recorded as broken, and nothing of it is
    kept. With the environment variable ``ZOO_STRICT`` set to 1 its error is raised instead: for plugin authors and CI.
    """
    found: dict[tuple[str, str, str], EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        found.setdefault((_distribution(entry)[0], entry.name, entry.value), entry)
    plugins = []
    for (distribution, name, value), entry in sorted(found.items(), key=lambda pair: pair[0]):
        plugin = Plugin(name, distribution, _distribution(entry)[1], value)
        plugins.append(plugin)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                plugin.specs = _specs_of(entry.load())
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if os.environ.get("ZOO_STRICT") == "1":
                raise
            plugin.state = "broken"
            plugin.cause = f"{type(error).__name__}: {error}"
            plugin.remedy = _remedy(error, plugin)
    return plugins


def _distribution(entry: EntryPoint) -> tuple[str, str]:
    try:
        dist = entry.dist
        return (dist.name, dist.version) if dist is not None else ("unknown", "")
    except Exception:  # metadata that can't be read
        return ("unreadable", "")


def _specs_of(loaded: Any) -> list[OptimizerSpec]:
    wanted = getattr(loaded, "ZOO_API", hookspecs.API_VERSION)
    if wanted != hookspecs.API_VERSION:
        raise RuntimeError(f"made for version {wanted} of the plugin API, this zoo has version {hookspecs.API_VERSION}")
    manager = pluggy.PluginManager("zoo")
    manager.add_hookspecs(hookspecs)
    manager.register(loaded)
    specs: list[OptimizerSpec] = []
    for returned in manager.hook.zoo_optimizers():
        if not isinstance(returned, Iterable):
            raise TypeError(f"zoo_optimizers must return OptimizerSpecs, not {type(returned).__name__}")
        for spec in returned:
            if not isinstance(spec, OptimizerSpec):
                raise TypeError(f"zoo_optimizers must yield OptimizerSpecs, not {type(spec).__name__}: {spec!r}")
            specs.append(spec)
    return specs


def _remedy(error: BaseException, plugin: Plugin) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"install {error.name}, which {plugin.distribution} needs, or uninstall {plugin.distribution}"
    if "plugin API" in str(error):
        return f"install a version of {plugin.distribution} made for this zoo"
    return f"report it to the authors of {plugin.distribution}, or uninstall it"
