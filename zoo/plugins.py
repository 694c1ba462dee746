"""Plugins: found through entry points, loaded one by one, and never able to break one another.

Finding reads metadata only. A plugin is loaded when the first look-up needs its table, unless the registry file in force
disables it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import Distribution, EntryPoint, distributions
from typing import Any

import pluggy

from . import hookspecs
from .spec import OptimizerSpec

__all__ = ["GROUP", "Plugin", "find_plugins", "load_plugin", "new_manager"]

GROUP = "zoo.plugins"
SLOW_SECONDS = 1.0
"""A table that takes longer than this to import is reported: importing torch is the usual reason."""


@dataclass
class Plugin:
    """One plugin and how it fared.

    Args:
        name: the entry point's name.
        distribution: the package that it came with.
        version: of that package.
        target: the module or object that the entry point names.
        state: "found" and not loaded yet, "ok", "slow" (it works, but its import takes long) or "broken".
        cause: what is wrong, where something is.
        remedy: what to do about it.
        specs: the optimizers that it brings.
        seconds: how long loading took.
        error: what loading raised.
    """

    name: str
    distribution: str
    version: str
    target: str
    state: str = "found"
    cause: str = ""
    remedy: str = ""
    specs: list[OptimizerSpec] = field(default_factory=list)
    seconds: float = 0.0
    error: BaseException | None = None

    @property
    def key(self) -> str:
        """``distribution:name``, which no other plugin has."""
        return f"{self.distribution}:{self.name}"

    def breaks(self, error: BaseException, remedy: str = "") -> None:
        """Record that the plugin can't be used, and why."""
        self.state, self.specs, self.error = "broken", [], error
        self.cause = " ".join(f"{type(error).__name__}: {error}".split())
        self.remedy = remedy or _remedy(error, self)


def new_manager() -> pluggy.PluginManager:
    """A pluggy manager that knows the zoo's hooks."""
    manager = pluggy.PluginManager("zoo")
    manager.add_hookspecs(hookspecs)
    return manager


def find_plugins() -> list[Plugin]:
    """Every installed plugin in the order of distribution and name, from metadata alone.

    One distribution on two paths counts once, as Python's own import takes the first. Metadata that can't be read makes
    a broken plugin where it is a plugin's, and is nobody's business here otherwise.
    """
    found: dict[tuple[str, str], Plugin] = {}
    seen: set[str] = set()
    for distribution in distributions():
        try:
            text = distribution.read_text("entry_points.txt") or ""
        except UnicodeDecodeError as error:
            text = error.object.decode("latin-1")
            if GROUP in text:
                _add(found, seen, distribution, [], error)
            continue
        if GROUP not in text:
            continue
        try:
            entries = [entry for entry in distribution.entry_points if entry.group == GROUP]
        except Exception as error:  # whatever a malformed file makes the parser raise
            _add(found, seen, distribution, [], error)
        else:
            _add(found, seen, distribution, entries)
    return [found[key] for key in sorted(found)]


def _add(
    found: dict[tuple[str, str], Plugin],
    seen: set[str],
    distribution: Distribution,
    entries: Iterable[EntryPoint],
    error: Exception | None = None,
) -> None:
    name, version, unread = _name_and_version(distribution)
    canonical = re.sub(r"[-_.]+", "-", name).lower()
    if canonical in seen:
        return
    seen.add(canonical)
    targets: set[str] = set()
    for entry in entries:
        if entry.value not in targets:
            targets.add(entry.value)
            plugin = found[canonical, entry.name] = Plugin(entry.name, name, version, entry.value)
            plugin.cause = unread
            plugin.remedy = f"reinstall {name}" if unread else ""
    if error is not None:
        plugin = found[canonical, ""] = Plugin("?", name, version, "")
        plugin.breaks(error, f"its entry_points.txt can't be read; reinstall {name}, or uninstall it")


def _name_and_version(distribution: Distribution) -> tuple[str, str, str]:
    """Name, version and what is wrong with the metadata, if anything is."""
    try:
        name, version = distribution.metadata["Name"], distribution.metadata["Version"]
        if name and version:
            return name, version, ""
        problem = "its METADATA has no name or no version"
    except Exception as error:  # missing, undecodable, …
        problem = f"its METADATA can't be read ({type(error).__name__}: {error})"
    folder = os.path.basename(str(getattr(distribution, "_path", "unknown")))
    name, _, version = folder.removesuffix(".dist-info").removesuffix(".egg-info").partition("-")
    return name.replace("_", "-"), version, problem


def load_plugin(plugin: Plugin, manager: pluggy.PluginManager) -> None:
    """Load a plugin's table, once, and register its hooks with ``manager``.

    A plugin that raises, exits, prints or returns something else than specs is recorded as broken, and nothing of it is
    kept. With the environment variable ``ZOO_STRICT`` set to 1 its error is raised instead: for plugin authors and CI.
    """
    if plugin.state != "found":
        return
    start = time.perf_counter()
    try:
        # A table has nothing to say on standard output, where `zoo list --json` writes.
        with contextlib.redirect_stdout(io.StringIO()):
            loaded = EntryPoint(plugin.name, plugin.target, GROUP).load()
            _check_version(loaded)
            plugin.specs = _register(loaded, plugin, manager)
        plugin.state = "ok"
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if os.environ.get("ZOO_STRICT") == "1":
            raise
        plugin.breaks(error)
        return
    finally:
        plugin.seconds = time.perf_counter() - start
    if plugin.seconds > SLOW_SECONDS:
        plugin.state = "slow"
        plugin.cause = f"takes {plugin.seconds:.1f} s to import"
        plugin.remedy = (
            f"the authors of {plugin.distribution} should import torch and optimizers only where a target lives"
        )


def _check_version(loaded: Any) -> None:
    wanted = getattr(loaded, "ZOO_API", hookspecs.API_VERSION)
    low, high = wanted if isinstance(wanted, tuple) and len(wanted) == 2 else (wanted, wanted)
    if not (isinstance(low, int) and isinstance(high, int)):
        raise TypeError(f"ZOO_API must be a version or a pair (oldest, newest), not {wanted!r}")
    if not low <= hookspecs.API_VERSION <= high:
        made_for = f"version {low}" if low == high else f"versions {low} to {high}"
        raise RuntimeError(f"made for {made_for} of the plugin API, this zoo has version {hookspecs.API_VERSION}")


def _register(loaded: Any, plugin: Plugin, manager: pluggy.PluginManager) -> list[OptimizerSpec]:
    """Register the plugin's hooks and collect its own specs; on any error nothing stays registered."""
    if manager.is_registered(loaded):
        raise RuntimeError(
            f"{plugin.target} is already the plugin {manager.get_name(loaded)}; uninstall one of the two"
        )
    manager.register(loaded, plugin.key)
    try:
        if not manager.get_hookcallers(loaded):
            raise TypeError(f"{plugin.target} implements no hook; mark its functions with zoo.hookimpl")
        unknown = [
            name for name, impl in _impls(manager, loaded) if not hasattr(hookspecs, name) and not impl.optionalhook
        ]
        if unknown:
            raise TypeError(f"implements {', '.join(unknown)}, which is no hook of this zoo")
        specs: list[OptimizerSpec] = []
        for name, impl in _impls(manager, loaded):
            if name == "zoo_optimizers":
                specs += _checked(impl.function())
        return specs
    except BaseException:
        manager.unregister(loaded)
        raise


def _impls(manager: pluggy.PluginManager, loaded: Any) -> list[tuple[str, pluggy.HookImpl]]:
    callers = manager.get_hookcallers(loaded) or []
    return [(caller.name, impl) for caller in callers for impl in caller.get_hookimpls() if impl.plugin is loaded]


def _checked(returned: Any) -> list[OptimizerSpec]:
    if returned is None:
        return []
    if not isinstance(returned, Iterable):
        raise TypeError(f"zoo_optimizers must return OptimizerSpecs, not {type(returned).__name__}")
    specs: dict[str, OptimizerSpec] = {}
    for spec in returned:
        if not isinstance(spec, OptimizerSpec):
            raise TypeError(f"zoo_optimizers must yield OptimizerSpecs, not {type(spec).__name__}: {spec!r}")
        if specs.setdefault(spec.name, spec) != spec:
            raise ValueError(f"lists {spec.name!r} twice, as {specs[spec.name].target} and {spec.target}")
    return list(specs.values())


def _remedy(error: BaseException, plugin: Plugin) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        module = plugin.target.partition(":")[0]
        if module == error.name or module.startswith(f"{error.name}."):
            return f"{plugin.distribution} is half installed; reinstall it, or uninstall it"
        return f"install {error.name}, which {plugin.distribution} needs, or uninstall {plugin.distribution}"
    if "plugin API" in str(error):
        return f"install a version of {plugin.distribution} made for this zoo"
    return f"report it to the authors of {plugin.distribution}, or uninstall it"
