"""Optimizers by name: look-ups, listing, creation. Metadata only until an optimizer is used."""

from __future__ import annotations

import difflib
import importlib
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from .errors import AmbiguousOptimizerError, PluginError, RegistryFileError, UnknownOptimizerError
from .plugins import Plugin, find_plugins, load_plugin, new_manager
from .spec import OptimizerSpec, Paper, normalised

if TYPE_CHECKING:
    import torch

    from .config import OptimizerConfig
    from .groups import GroupRule
    from .optimizer import BaseOptimizer
    from .race.tasks import RaceTask
    from .registry_file import Preset, Settings, Source

__all__ = [
    "ListedName",
    "clashes",
    "create_optimizer",
    "from_config",
    "list_optimizers",
    "optimizer_class",
    "optimizer_config",
    "optimizer_spec",
    "plugins",
    "preset",
    "race_tasks",
    "refresh",
    "register",
    "registered",
    "unregister",
]

HERE = "runtime"
"""The owner of what was registered in this process."""


class ListedName(str):
    """A name in a list, with what it is.

    Args:
        name: the name.
        kind: "optimizer", "preset" or "alias".
        optimizer: the optimizer behind it.
    """

    kind: Literal["optimizer", "preset", "alias"]
    optimizer: str

    def __new__(cls, name: str, kind: Literal["optimizer", "preset", "alias"], optimizer: str) -> ListedName:
        self = super().__new__(cls, name)
        self.kind, self.optimizer = kind, optimizer
        return self


@dataclass(frozen=True)
class _Entry:
    """A spec and whose it is."""

    spec: OptimizerSpec
    plugin: Plugin
    cls: type | None = None

    @property
    def owner(self) -> str:
        return self.plugin.distribution


class _Registry:
    """What is installed, found at the first look-up and loaded as far as look-ups need it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.manager = new_manager()
        self.plugins = find_plugins()
        self.here = Plugin(HERE, HERE, "", "", state="ok")
        self.names: dict[str, list[_Entry]] = {}
        self.aliases: dict[str, list[_Entry]] = {}

    def load(self, wanted: Callable[[Plugin], bool]) -> None:
        """Load the plugins that are ``wanted`` and not loaded yet."""
        with self.lock:
            broken: list[Plugin] = []
            for plugin in self.plugins:
                if plugin.state == "found" and wanted(plugin):
                    load_plugin(plugin, self.manager)
                    for spec in plugin.specs:
                        self.add(_Entry(spec, plugin))
                    broken += [plugin] if plugin.state == "broken" else []
        if broken:
            listed = "; ".join(f"{plugin.name} of {plugin.distribution} ({plugin.cause})" for plugin in broken)
            warnings.warn(f"zoo: plugins that could not be loaded: {listed}; `zoo doctor` tells more", stacklevel=4)

    def add(self, entry: _Entry) -> None:
        self.names.setdefault(normalised(entry.spec.name), []).append(entry)
        for alias in dict.fromkeys(map(normalised, entry.spec.aliases)):
            self.aliases.setdefault(alias, []).append(entry)

    def remove(self, entry: _Entry) -> None:
        for index in (self.names, self.aliases):
            for name in [name for name, entries in index.items() if entry in entries]:
                index[name].remove(entry)
                if not index[name]:
                    del index[name]


_found: list[_Registry] = []
_finding = threading.Lock()


def _registry() -> _Registry:
    with _finding:
        if not _found:
            _found.append(_Registry())
        return _found[0]


def refresh() -> None:
    """Forget what was found, so that the next look-up sees packages installed since; run-time registrations stay."""
    with _finding:
        old = _found.pop() if _found else None
        if old is not None:
            _found.append(_Registry())
            for entries in list(old.names.values()):
                for entry in entries:
                    if entry.plugin is old.here:
                        _found[0].add(_Entry(entry.spec, _found[0].here, entry.cls))


class _View:
    """What is installed, as a registry file has it: enabled, preferred, aliased and preset.

    The shipped default has aliases and presets only (a test holds it to that), so it is read when a name is no
    optimizer's, and everything else stays as quick as metadata.
    """

    def __init__(self, source: Source | None) -> None:
        source = source if source is not None else os.environ.get("ZOO_REGISTRY") or "default"
        self.registry = _registry()
        self.limits = None if isinstance(source, str) and source == "default" else _load_settings(source)

    @property
    def settings(self) -> Settings:
        return self.limits if self.limits is not None else _load_settings("default")

    def loads(self, plugin: Plugin) -> bool:
        return self.limits is None or self.limits.file.plugins.allow(plugin.distribution, plugin.key)

    def has(self, entry: _Entry) -> bool:
        if self.limits is None:
            return True
        names = (entry.spec.name, f"{entry.owner}:{entry.spec.name}")
        return (entry.owner == HERE or self.loads(entry.plugin)) and self.limits.file.optimizers.allow(*names)

    def entries(self) -> list[_Entry]:
        """Every enabled optimizer, by name and owner."""
        self.registry.load(self.loads)
        found = [entry for entries in self.registry.names.values() for entry in entries if self.has(entry)]
        return sorted(found, key=lambda entry: (entry.spec.name, entry.owner))

    def entry(self, name: str) -> _Entry | None:
        """The enabled optimizer of this name or alias, qualified or not; None where there is none."""
        owner, _, plain = name.rpartition(":")
        owner, plain = normalised(owner), normalised(plain)
        self.registry.load(lambda plugin: self.loads(plugin) and owner in ("", normalised(plugin.distribution)))
        own_names = self.limits.labels if self.limits is not None and not owner else {}
        # A name comes before an alias, and what the user's file calls something before what a plugin calls it.
        for index in (self.registry.names, {} if plain in own_names else self.registry.aliases):
            entries = [entry for entry in index.get(plain, []) if self.has(entry)]
            found = [entry for entry in entries if owner in ("", normalised(entry.owner))]
            if found:
                return self.one(plain, found)
        return None

    def one(self, name: str, found: list[_Entry]) -> _Entry:
        """The one of several that the registry file prefers."""
        preferred = None if self.limits is None else self.limits.file.prefer.get(name)
        if len(found) > 1 and preferred is not None:
            found = [entry for entry in found if normalised(entry.owner) == normalised(preferred)] or found
        if len(found) == 1:
            return found[0]
        owners = sorted({entry.owner for entry in found})
        if len(owners) > 1:
            raise AmbiguousOptimizerError(name, owners)
        targets = " and ".join(entry.spec.target for entry in found)
        raise PluginError(f"{owners[0]} lists {name!r} more than once, for {targets}; report it to its authors")

    def resolve(self, name: str) -> _Resolved:
        """What a name stands for."""
        if not isinstance(name, str):
            raise TypeError(f"an optimizer is asked for by its name, not by a {type(name).__name__}")
        entry, key = self.entry(name), normalised(name)
        if entry is not None:
            if self.limits is not None and key in self.limits.labels and key == normalised(entry.spec.name):
                place, label = self.limits.places[key], self.limits.labels[key]
                raise RegistryFileError(
                    place, f"{label!r} is already an optimizer of {entry.owner}; choose another name"
                )
            return _Resolved(entry)
        settings = self.settings
        if key not in settings.labels:
            raise self.unknown(name)
        preset = settings.file.presets.get(key)
        label = f"{'alias' if preset is None else 'preset'} {settings.labels[key]!r} of {settings.places[key]}"
        target = settings.file.aliases[key] if preset is None else preset.optimizer
        entry = self.entry(target)
        if entry is None:
            raise self.unknown(target, f" (asked for by {label})")
        return _Resolved(entry, preset, label)

    def unknown(self, name: str, note: str = "") -> UnknownOptimizerError:
        """The error for a name that nothing has, with the nearest names that there are."""
        labels = self.settings.labels
        known = {key: labels[key] for key in labels}
        for entry in self.entries():
            # Close to an alias is close to its optimizer.
            known.update({normalised(alias): entry.spec.name for alias in (*entry.spec.aliases, entry.spec.name)})
        near = difflib.get_close_matches(normalised(name.rpartition(":")[2]), known, n=8, cutoff=0.0)
        if self.limits is not None:
            hidden = [plugin.key for plugin in self.registry.plugins if not self.loads(plugin)]
            if any(not self.has(entry) for entry in self.registry.names.get(normalised(name), [])):
                note += f": it is installed, but {self.limits.source} does not enable it"
            elif hidden:
                note += f" ({self.limits.source} does not enable {', '.join(hidden)})"
        broken = [plugin for plugin in self.registry.plugins if plugin.state == "broken"]
        closest = list(dict.fromkeys(known[key] for key in near))[:3]
        error = UnknownOptimizerError(name, closest, [f"{p.name} of {p.distribution}" for p in broken], note)
        asked = {normalised(name), normalised(name.partition(":")[0])}
        # Whoever asks for a broken plugin by its name gets what broke it.
        error.__cause__ = next(
            (p.error for p in broken if asked & {normalised(p.name), normalised(p.distribution)}), None
        )
        return error


@dataclass(frozen=True)
class _Resolved:
    """What a name stands for: an optimizer, and what its preset says."""

    entry: _Entry
    preset: Preset | None = None
    label: str = ""


def _load_settings(source: Source) -> Settings:
    from .registry_file import load_settings

    return load_settings(source)


def plugins(registry: Source | None = None) -> list[Plugin]:
    """Every installed plugin, loaded where the registry enables it: distribution, version, state, cause and remedy."""
    view = _View(registry)
    view.registry.load(view.loads)
    return list(view.registry.plugins)


def clashes(registry: Source | None = None) -> dict[str, list[str]]:
    """Names that several distributions have and the registry prefers none for, with their owners."""
    view = _View(registry)
    view.entries()
    found = {}
    for index in (view.registry.names, view.registry.aliases):
        for name, entries in index.items():
            if name not in found and not (index is view.registry.aliases and name in view.registry.names):
                try:
                    view.one(name, [entry for entry in entries if view.has(entry)] or entries[:1])
                except AmbiguousOptimizerError as error:
                    found[name] = error.owners
                except PluginError:
                    found[name] = [entry.owner for entry in entries]
    return found


def optimizer_spec(name: str, *, registry: Source | None = None) -> OptimizerSpec:
    """The spec behind this name, alias or preset; ``distribution:name`` picks one where several have the name.

    Case does not matter, and ``-``, ``_`` and space are the same.

    Args:
        name: what to look up.
        registry: a registry file, a mapping like one, or "default"; None takes ``ZOO_REGISTRY``, else the default.

    Raises:
        UnknownOptimizerError: nothing has this name; the closest names are given.
        AmbiguousOptimizerError: several distributions have it, and ``prefer`` in the registry names none of them.
        RegistryFileError: the registry file says something wrong.
    """
    return _View(registry).resolve(name).entry.spec


def preset(name: str, *, registry: Source | None = None) -> Preset | None:
    """The preset of this name; None where the name is an optimizer's.

    Raises:
        UnknownOptimizerError: nothing has this name.
    """
    return _View(registry).resolve(name).preset


def list_optimizers(
    pattern: str | None = None, *, family: str | None = None, tag: str | None = None, registry: Source | None = None
) -> list[str]:
    """The sorted names of the optimizers that there are; every name can be created.

    A name that several distributions have is listed once for each, as ``distribution:name``.

    Args:
        pattern: names to list, with wildcards such as ``"*adam*"``.
        family: only this family.
        tag: only optimizers with this tag.
        registry: also the presets and aliases of this registry (a file, a mapping like one, or "default"). Then each
            entry is a :class:`ListedName`: text that has ``kind`` and ``optimizer``.
    """
    view = _View(registry)
    listed = [(ListedName(name, "optimizer", name), entry.spec) for name, entry in _creatable(view)]
    if registry is not None:
        file = view.settings.file
        targets = {**file.aliases, **{key: preset.optimizer for key, preset in file.presets.items()}}
        for key, target in targets.items():
            entry = view.entry(target)
            if entry is not None and key not in view.registry.names:
                name, kind = view.settings.labels[key], "preset" if key in file.presets else "alias"
                listed.append((ListedName(name, kind, entry.spec.name), entry.spec))  # type: ignore[arg-type]
    wanted = None if pattern is None else normalised(pattern)
    return sorted(
        name if registry is not None else str(name)
        for name, spec in listed
        if (wanted is None or fnmatchcase(normalised(name), wanted))
        and (family is None or spec.family == family)
        and (tag is None or tag in spec.tags)
    )


def _creatable(view: _View) -> Iterator[tuple[str, _Entry]]:
    """Each enabled optimizer under the name that creates it."""
    for entry in view.entries():
        name = entry.spec.name
        try:
            chosen = view.entry(name)
        except (AmbiguousOptimizerError, PluginError):
            chosen = None
        yield (name if chosen is entry else f"{entry.owner}:{name}"), entry


def optimizer_class(name: str, *, registry: Source | None = None) -> type[BaseOptimizer[Any]]:
    """The class behind this name, imported now if it was not.

    Raises:
        PluginError: the class can't be imported, or is no optimizer of the zoo.
    """
    return _class_of(_View(registry).resolve(name).entry)


def _class_of(entry: _Entry) -> type[BaseOptimizer[Any]]:
    spec = entry.spec
    cls: Any = entry.cls
    if cls is None:
        module, _, attribute = spec.target.partition(":")
        try:
            cls = getattr(importlib.import_module(module), attribute)
        except Exception as error:  # whatever a stranger's module raises
            raise PluginError(
                f"optimizer {spec.name!r} of {entry.owner} can't be loaded from {spec.target!r}: "
                f"{type(error).__name__}: {error}"
            ) from error
    from .optimizer import BaseOptimizer

    if not (isinstance(cls, type) and issubclass(cls, BaseOptimizer)):
        raise PluginError(f"optimizer {spec.name!r} of {entry.owner}: {spec.target} is no zoo.BaseOptimizer")
    cls.registered_name = spec.name  # what its messages call it
    return cls


def optimizer_config(name: str, *, registry: Source | None = None) -> type[OptimizerConfig]:
    """The pydantic model of this optimizer's options."""
    return optimizer_class(name, registry=registry).Config


def create_optimizer(
    name: str | Mapping[str, Any],
    params: Any,
    *,
    registry: Any = None,  # not Source: a caller's dict[str, float] of options must still fit
    **cfg: Any,
) -> torch.optim.Optimizer:
    """The optimizer of this name for ``params``.

    Args:
        name: a name, alias or preset; or a mapping with the key ``name`` (or ``optimizer``), options, and rules under
            ``param_groups``, such as a node of a config file.
        params: what torch accepts, or a module: its parameters that require grad, with their names.
        registry: a registry file, a mapping like one, or "default"; None takes ``ZOO_REGISTRY``, else the default.
        cfg: the optimizer's options; they win over those of a preset or mapping, and the rules of a preset over both.

    Raises:
        UnknownOptimizerError: nothing has this name.
        pydantic.ValidationError: an unknown or out-of-range option; a ``ValueError``.
        ParameterGroupError: a rule of the preset matches no parameter, or two match the same.
        RegistryFileError: the registry, or the mapping, says something wrong.
    """
    if isinstance(name, Mapping):
        if not {"name", "optimizer"} & set(name):
            listed = sorted(map(str, name))
            raise ValueError(f"a mapping for create_optimizer needs the key 'name' (or 'optimizer'), not only {listed}")
        from .registry_file import preset_of

        return _created(preset_of(name), params, registry, cfg)
    resolved = _View(registry).resolve(name)
    if resolved.preset is None:
        return _built(resolved, params, cfg, ())
    return _built(resolved, params, {**resolved.preset.options, **cfg}, resolved.preset.param_groups)


def _created(preset: Preset, params: Any, registry: Source | None, cfg: Mapping[str, Any]) -> torch.optim.Optimizer:
    """The optimizer of a preset that may itself name a preset, whose options and rules it replaces one by one."""
    resolved = _View(registry).resolve(preset.optimizer)
    options, rules = {**preset.options, **cfg}, preset.param_groups
    if resolved.preset is not None:
        options = {**resolved.preset.options, **options}
        rules = rules if "param_groups" in preset.model_fields_set else resolved.preset.param_groups
    return _built(resolved, params, options, rules)


def _built(
    resolved: _Resolved, params: Any, options: dict[str, Any], rules: tuple[GroupRule, ...]
) -> torch.optim.Optimizer:
    spec, hook = resolved.entry.spec, _registry().manager.hook
    cls = _class_of(resolved.entry)
    module = sys.modules["torch.nn"].Module  # the class is torch's, so torch is here
    if rules:
        from .groups import parameter_groups

        params = parameter_groups(params, rules)
    elif isinstance(params, module):
        from .groups import named_parameters

        params = named_parameters(params)
    options = dict(options)
    hook.zoo_configure(spec=spec, options=options)
    hook.zoo_check(spec=spec, options=MappingProxyType(options))
    try:
        optimizer = cls(params, **options)
    except ValueError as error:
        if resolved.label and hasattr(error, "add_note"):  # Python 3.11
            error.add_note(resolved.label)
        raise
    hook.zoo_created(spec=spec, optimizer=optimizer)
    return optimizer


def from_config(
    config: Source, params: Any, *, preset: Any = None, registry: Any = None, **cfg: Any
) -> torch.optim.Optimizer:
    """The optimizer that a config describes.

    Args:
        config: a mapping or a YAML or JSON file with ``name`` (or ``optimizer``), options and ``param_groups``; or a
            registry (a file, a mapping or "default"), of which ``preset`` picks a preset.
        params: a module, or what torch accepts.
        preset: which preset of a registry; not needed where it has only one.
        registry: where names are looked up when ``config`` is no registry itself.
        cfg: options that win over those of the config.

    Raises:
        RegistryFileError: the config can't be read or says something wrong; file, line and key are named.
        ValueError: as :func:`create_optimizer`.
    """
    from .registry_file import load_preset

    name, lone = load_preset(config, preset)
    if lone is not None:
        return _created(lone, params, registry, cfg)
    return create_optimizer(name, params, registry=config, **cfg)


def race_tasks() -> list[RaceTask]:
    """The tasks that plugins bring for ``zoo race``.

    Raises:
        PluginError: a plugin brings something else than tasks.
    """
    registry = _registry()
    registry.load(lambda plugin: True)
    tasks: list[RaceTask] = []
    for returned in registry.manager.hook.zoo_race_tasks():
        for task in returned:
            if not hasattr(task, "build"):
                raise PluginError(
                    f"a plugin's zoo_race_tasks gave a {type(task).__name__}: {task!r}, which is no RaceTask"
                )
            tasks.append(task)
    return tasks


# Registering at run time ----------------------------------------------------------------------------------------

T = TypeVar("T", bound=type)


@overload
def register(what: OptimizerSpec) -> OptimizerSpec: ...


@overload
def register(what: T) -> T: ...


@overload
def register(
    what: str | None = None,
    *,
    family: str = "",
    summary: str = "",
    paper: Paper | None = None,
    aliases: Iterable[str] = (),
    tags: Iterable[str] = (),
) -> Callable[[T], T]: ...


def register(
    what: Any = None,
    *,
    family: str = "",
    summary: str = "",
    paper: Paper | None = None,
    aliases: Iterable[str] = (),
    tags: Iterable[str] = (),
) -> Any:
    """Make an optimizer known in this process, for notebooks and tests.

    A call with a spec, or a decorator: ``@zoo.register`` (the class's name in lower case, words joined by ``_``) or
    ``@zoo.register("my_step", summary="…")``. The same again changes nothing; a class that was defined anew, as when a
    notebook's cell runs twice, takes the place of the old one.

    Args:
        what: a spec, a class, or the name for the class that follows.
        family: as in :class:`OptimizerSpec`, and so are ``summary``, ``paper``, ``aliases`` and ``tags``.

    Raises:
        ValueError: another optimizer has the name or an alias.
    """
    if isinstance(what, OptimizerSpec):
        return _add(_Entry(what, _registry().here)).spec
    details: dict[str, Any] = {"family": family, "summary": summary, "paper": paper, "aliases": aliases, "tags": tags}

    def decorate(cls: T) -> T:
        name = what if isinstance(what, str) else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        _add(_Entry(OptimizerSpec(name, f"{cls.__module__}:{cls.__qualname__}", **details), _registry().here, cls))
        return cls

    return decorate(what) if isinstance(what, type) else decorate


def _add(entry: _Entry) -> _Entry:
    registry = _registry()
    registry.load(lambda plugin: True)
    with registry.lock:
        old = None
        for name in dict.fromkeys(map(normalised, (entry.spec.name, *entry.spec.aliases))):
            for known in (*registry.names.get(name, ()), *registry.aliases.get(name, ())):
                if (
                    known.owner == HERE
                    and known.spec.target == entry.spec.target
                    and known.spec.name == entry.spec.name
                ):
                    old = known
                elif known.spec != entry.spec:
                    raise ValueError(
                        f"{name!r} is already an optimizer of {known.owner}; unregister it or choose another name"
                    )
        if old is not None:
            registry.remove(old)
        registry.add(entry)
    return entry


def unregister(name: str) -> None:
    """Forget an optimizer that :func:`register` made known.

    Raises:
        KeyError: no optimizer of this name was registered in this process.
    """
    registry = _registry()
    with registry.lock:
        found = [entry for entry in registry.names.get(normalised(name), []) if entry.owner == HERE]
        if not found:
            raise KeyError(f"{name!r} was not registered in this process")
        registry.remove(found[0])


@contextmanager
def registered(what: OptimizerSpec | type, **details: Any) -> Iterator[OptimizerSpec]:
    """Make an optimizer known inside a ``with`` block; takes what :func:`register` takes, and a class's ``name``."""
    if isinstance(what, OptimizerSpec):
        spec = register(what)
    else:
        register(details.pop("name", None), **details)(what)
        spec = next(e.spec for es in _registry().names.values() for e in es if e.cls is what)
    try:
        yield spec
    finally:
        unregister(spec.name)
