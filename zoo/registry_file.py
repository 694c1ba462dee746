"""``registry.yaml``: what a user or a team edits. Which plugins and optimizers are enabled, aliases, presets.

It is data. Reading one imports no plugin and runs nothing; a preset's options are checked by its optimizer's own config
when it is created, or all at once by ``zoo doctor --registry FILE``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from .config import closest
from .errors import RegistryFileError
from .groups import GroupRule, Match, Patterns
from .spec import normalised
from .yaml_file import Document, read_yaml

__all__ = [
    "DEFAULT",
    "Preset",
    "RegistryFile",
    "Settings",
    "Switches",
    "load_preset",
    "load_settings",
    "registry_source",
]

DEFAULT = Path(__file__).with_name("registry.yaml")
"""The registry that ships with the package."""
MAX_EXTENDS = 16

Source = str | os.PathLike[str] | Mapping[str, Any]
"""Where a registry is: ``"default"``, a path, or what a file would say."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Switches(_Strict):
    """What is enabled: what a pattern of ``enable`` matches and none of ``disable``."""

    enable: Patterns = Field(("*",), description="Wildcards for names that are enabled.")
    disable: Patterns = Field((), description="Wildcards for names that are not, whatever enable says.")

    def allow(self, *names: str) -> bool:
        """Whether something known by these names is enabled."""

        def listed(patterns: Sequence[str]) -> bool:
            return any(fnmatchcase(normalised(name), normalised(pattern)) for pattern in patterns for name in names)

        return listed(self.enable) and not listed(self.disable)


class Preset(BaseModel):
    """An optimizer with options and parameter-group rules, under a name of its own.

    Every key but those below is an option of the optimizer.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    optimizer: str = Field(description="Name or alias of the optimizer.")
    description: str = Field("", description="What the preset is for.")
    source: str = Field("", description="Where its numbers come from.")
    param_groups: tuple[GroupRule, ...] = Field((), description="Options for parameters that match.")

    @property
    def options(self) -> dict[str, Any]:
        """The optimizer's options."""
        return dict(self.model_extra or {})


class RegistryFile(_Strict):
    """A registry file."""

    version: Literal[1] = Field(description="Version of this format.")
    extends: str | None = Field(None, description="'default' or another file, whose entries this one adds to.")
    plugins: Switches = Field(Switches(), description="Distributions of plugins that may be loaded.")
    optimizers: Switches = Field(Switches(), description="Optimizers that may be created.")
    aliases: dict[str, str] = Field({}, description="Other names for optimizers.")
    prefer: dict[str, str] = Field({}, description="For a name that several distributions have: whose it is.")
    presets: dict[str, Preset] = Field({}, description="Optimizers with options, under names of their own.")

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_sections(cls, data: Any) -> Any:
        return {key: value for key, value in data.items() if value is not None} if isinstance(data, dict) else data


@dataclass(frozen=True)
class Settings:
    """A registry file with everything that it extends.

    Args:
        source: the file, or what stands in its place.
        file: what is in force; names are normalised.
        places: where each alias and preset stands, by normalised name.
        labels: how each alias and preset is written, by normalised name.
    """

    source: str
    file: RegistryFile
    places: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


def registry_source(registry: Source | None) -> Source | None:
    """The registry that was asked for: the argument, else ``ZOO_REGISTRY``, else None (the shipped default)."""
    return registry if registry is not None else os.environ.get("ZOO_REGISTRY") or None


_cache: dict[str, tuple[list[tuple[Path, int, int]], Settings]] = {}


def load_settings(registry: Source | None = None) -> Settings:
    """The settings of a registry, with what it extends; a file is read again when it changed.

    Args:
        registry: ``"default"``, a path or a mapping; None takes ``ZOO_REGISTRY``, else the shipped default.

    Raises:
        RegistryFileError: it, or what it extends, can't be read or says something wrong; file, line and key are named.
    """
    source = registry_source(registry)
    if isinstance(source, Mapping):
        return _merged(_chain(Document(_plain(source)), "registry", Path.cwd(), []))
    path = (DEFAULT if source is None or source == "default" else Path(source).expanduser()).resolve()
    cached = _cache.get(str(path))
    if cached is not None and cached[0] == [_stamp(part) for part, _, _ in cached[0]]:
        return cached[1]
    files = _chain(None, str(path), path.parent, [])
    settings = _merged(files)
    _cache[str(path)] = [_stamp(Path(part.source)) for part in files], settings
    return settings


def _stamp(path: Path) -> tuple[Path, int, int]:
    try:
        status = path.stat()
    except OSError:
        return (path, -1, -1)
    return (path, status.st_mtime_ns, status.st_size)


@dataclass
class _Part:
    """One file of a chain."""

    source: str
    document: Document
    file: RegistryFile


def _chain(document: Document | None, source: str, folder: Path, seen: list[str]) -> list[_Part]:
    """The file and what it extends, nearest first."""
    if source in seen:
        raise RegistryFileError(source, f"extends itself: {' → '.join([*seen[seen.index(source) :], source])}")
    if len(seen) >= MAX_EXTENDS:
        raise RegistryFileError(
            source, f"is the end of a chain of more than {MAX_EXTENDS} files that extend one another"
        )
    document = document if document is not None else read_yaml(Path(source))
    part = _Part(source, document, _validated(RegistryFile, document, source))
    if part.file.extends is None:
        return [part]
    base = DEFAULT if part.file.extends == "default" else folder / Path(part.file.extends).expanduser()
    if not base.exists():
        line = document.line(("extends",))
        raise RegistryFileError(source, f"extends {part.file.extends!r}, but {base} does not exist", line)
    base = base.resolve()
    return [part, *_chain(None, str(base), base.parent, [*seen, source])]


def _merged(parts: Sequence[_Part]) -> Settings:
    """Entries of nearer files win; the enable and disable lists of a nearer file replace those further off."""
    values: dict[str, Any] = {"version": 1, "aliases": {}, "prefer": {}, "presets": {}}
    places: dict[str, str] = {}
    labels: dict[str, str] = {}
    for part in reversed(parts):
        for kind in ("plugins", "optimizers"):
            if kind in part.file.model_fields_set:
                before = values.get(kind, Switches())
                given = getattr(part.file, kind)
                values[kind] = before.model_copy(update={key: getattr(given, key) for key in given.model_fields_set})
        names: dict[str, tuple[str, ...]] = {}
        for kind in ("aliases", "presets"):
            for name, value in getattr(part.file, kind).items():
                key = normalised(name)
                line = part.document.line((kind, name))
                if key in names:
                    first = part.document.line(names[key])
                    raise RegistryFileError(part.source, f"has the name {name!r} twice, first on line {first}", line)
                names[key] = (kind, name)
                for other in ("aliases", "presets"):
                    values[other].pop(key, None)
                values[kind][key] = value
                places[key] = part.source if line is None else f"{part.source}:{line}"
                labels[key] = name
        values["prefer"].update({normalised(name): owner for name, owner in part.file.prefer.items()})
    # Everything in here has been validated, a file at a time.
    return Settings(parts[0].source, RegistryFile.model_construct(**{**_DEFAULTS, **values}), places, labels)


_DEFAULTS = {"plugins": Switches(), "optimizers": Switches(), "extends": None}


def load_preset(config: Source, preset: str | None = None) -> tuple[str, Preset | None]:
    """What a config describes: a preset of the registry that it is, by name, or a lone preset.

    Raises:
        RegistryFileError: the file can't be read or says something wrong, or it is not clear which preset is meant.
    """
    if isinstance(config, Mapping):
        document, source = Document(_plain(config)), "config"
    elif config == "default":
        document, source = read_yaml(DEFAULT), "default"
    else:
        source = str(config)
        document = read_yaml(Path(config).expanduser())
    if isinstance(document.value, dict) and {"version", "presets", "extends"} & set(document.value):
        load_settings(config)
        if preset is None:
            own = list(document.value.get("presets") or {})
            if len(own) != 1:
                listed = f"presets: {', '.join(own)}" if own else "it has none"
                raise RegistryFileError(source, f"is a registry; say which of its presets to take ({listed})")
            preset = own[0]
        return preset, None
    if preset is not None:
        raise RegistryFileError(source, f"is a single preset, so it has no preset {preset!r}")
    return "", _lone_preset(document, source)


def preset_of(mapping: Mapping[str, Any], source: str = "config") -> Preset:
    """A mapping with an optimizer's name and options as a preset; the key may be ``name`` or ``optimizer``."""
    return _lone_preset(Document(_plain(mapping)), source)


def _lone_preset(document: Document, source: str) -> Preset:
    value = document.value
    if isinstance(value, dict) and "name" in value:
        if "optimizer" in value:
            raise RegistryFileError(source, "has both 'name' and 'optimizer'; give one", document.line(("name",)))
        document = Document({**value, "optimizer": value["name"]}, document.lines)
        del document.value["name"]
    return _validated(Preset, document, source)


def _plain(value: Any) -> Any:
    """Mappings and sequences of any kind (nodes of config libraries) as dictionaries and lists."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, tuple)):
        return [_plain(entry) for entry in value]
    return value


M = TypeVar("M", bound=BaseModel)


def _validated(model: type[M], document: Document, source: str) -> M:
    if not isinstance(document.value, dict):
        kind = "empty" if document.value is None else f"a {type(document.value).__name__}"
        raise RegistryFileError(source, f"is {kind}; a registry is a mapping that starts with 'version: 1'")
    try:
        return model.model_validate(document.value)
    except ValidationError as error:
        problems = [_problem(model, document, line) for line in error.errors()]
    first = problems[0][1]
    text = "; ".join(message if n == first else f"line {n}: {message}" for message, n in problems)
    raise RegistryFileError(source, text, first)


def _problem(model: type[BaseModel], document: Document, error: Mapping[str, Any]) -> tuple[str, int | None]:
    """One error of pydantic in words, and its line."""
    path: tuple[str | int, ...] = tuple(error["loc"])
    where = ".".join(map(str, path))
    fields = _fields_at(model, path[:-1])
    if error["type"] == "extra_forbidden":
        hint = "".join(f"; did you mean {name!r}?" for name in closest(str(path[-1]), fields))
        return f"unknown key {where!r}{hint} Keys here: {', '.join(fields)}", document.line(path)
    if error["type"] == "missing":
        given = _value_at(document.value, path[:-1])
        near = closest(str(path[-1]), given) if isinstance(given, dict) else []
        hint = "".join(f"; is {name!r} meant to be it?" for name in near)
        return f"key {where!r} is missing{hint}", document.line(path[:-1])
    return f"{where}: {error['msg']}", document.line(path)


def _value_at(value: Any, path: Iterable[str | int]) -> Any:
    for key in path:
        value = value[key]
    return value


def _fields_at(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """The keys of the model that stands at ``path`` inside ``model``."""
    if model is RegistryFile and path[:1] in (("plugins",), ("optimizers",)):
        model = Switches
    elif model is RegistryFile and path[:1] == ("presets",):
        model, path = Preset, path[2:]
    if model is Preset and path[:1] == ("param_groups",):
        model = Match if "match" in path[2:] else GroupRule
    return list(model.model_fields)
