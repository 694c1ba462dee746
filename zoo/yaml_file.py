"""YAML as data: plain values, the line that each came from, and nothing that a file could do to its reader.

Scalars are those of YAML 1.2's core schema, so ``6e-4`` is a number and ``no`` is a word. Tags that would build
objects, aliases that unfold without end, keys given twice, and files too large or too deep are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .errors import RegistryFileError

__all__ = ["MAX_BYTES", "Document", "parse_yaml", "read_yaml"]

MAX_BYTES = 256 * 1024
MAX_DEPTH = 32
MAX_VALUES = 20_000
"""Values of a document once every alias is unfolded."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}


@dataclass
class Document:
    """What a YAML text says.

    Args:
        value: dictionaries, lists, text, numbers, bools and None.
        lines: the line (from 1) on which the value at each path stands; a path is a tuple of keys and positions.
    """

    value: Any
    lines: dict[tuple[str | int, ...], int] = field(default_factory=dict)

    def line(self, path: tuple[str | int, ...]) -> int | None:
        """The line of ``path``, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)


def read_yaml(path: Path) -> Document:
    """The document in this file.

    Raises:
        RegistryFileError: it can't be read, is larger than ``MAX_BYTES``, is not UTF-8 or no YAML that is data.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RegistryFileError(str(path), f"can't be read: {error.strerror or error}") from error
    if len(content) > MAX_BYTES:
        raise RegistryFileError(str(path), f"is larger than {MAX_BYTES // 1024} KiB; no registry is that long")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise RegistryFileError(str(path), "is no UTF-8 text", line) from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, source: str) -> Document:
    """The document that ``text`` is; ``source`` is what errors call it.

    Raises:
        RegistryFileError: it is no YAML, holds more than plain data, or unfolds to more than ``MAX_VALUES`` values.
    """
    try:
        return _Reader(yaml.parse(text, Loader=_LOADER), source).document()
    except yaml.YAMLError as error:
        mark: Any = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        raise RegistryFileError(source, f"is no YAML: {problem}", None if mark is None else mark.line + 1) from None


class _Reader:
    """Builds a document from parser events, counting as it goes."""

    def __init__(self, events: Iterator[Any], source: str) -> None:
        self.events = events
        self.source = source
        self.lines: dict[tuple[str | int, ...], int] = {}
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.open_anchors: set[str] = set()
        self.count = 0

    def document(self) -> Document:
        next(self.events)  # the stream's start
        event = next(self.events)
        if isinstance(event, yaml.StreamEndEvent):
            return Document(None)
        value = self.value(next(self.events), ())
        next(self.events)  # the document's end
        event = next(self.events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise self.error("holds more than one document ('---'); split it", event)
        return Document(value, self.lines)

    def error(self, message: str, event: Any) -> RegistryFileError:
        return RegistryFileError(self.source, message, _line(event))

    def add(self, count: int, event: Any) -> None:
        self.count += count
        if self.count > MAX_VALUES:
            raise self.error(f"unfolds to more than {MAX_VALUES} values; use fewer aliases", event)

    def value(self, event: Any, path: tuple[str | int, ...]) -> Any:
        self.lines[path] = _line(event)
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event)
        if getattr(event, "tag", None) is not None:
            raise self.error(f"has the tag {event.tag!r}; a registry is plain data, write the value itself", event)
        if len(path) > MAX_DEPTH:
            raise self.error(f"is nested more than {MAX_DEPTH} levels deep", event)
        before, anchor = self.count, event.anchor
        self.add(1, event)
        if anchor is not None:
            self.open_anchors.add(anchor)
        built: Any
        if isinstance(event, yaml.ScalarEvent):
            built = _scalar(event.value) if event.implicit[0] else event.value
        elif isinstance(event, yaml.SequenceStartEvent):
            built = self.sequence(path)
        else:
            built = self.mapping(path)
        if anchor is not None:
            self.open_anchors.discard(anchor)
            self.anchors[anchor] = (built, self.count - before)
        return built

    def alias(self, event: Any) -> Any:
        if event.anchor in self.open_anchors:
            raise self.error(f"has the alias *{event.anchor} inside the value that it stands for", event)
        if event.anchor not in self.anchors:
            raise self.error(f"has the alias *{event.anchor}, but no &{event.anchor} before it", event)
        built, size = self.anchors[event.anchor]
        self.add(size, event)
        return built

    def sequence(self, path: tuple[str | int, ...]) -> list[Any]:
        built: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            built.append(self.value(event, (*path, len(built))))
        return built

    def mapping(self, path: tuple[str | int, ...]) -> dict[str, Any]:
        built: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or event.tag is not None:
                raise self.error("has a key that is no plain text", event)
            key = event.value
            if key == "<<" and event.implicit[0]:
                raise self.error("has a merge key '<<'; write the values out, or use 'extends'", event)
            if key in built:
                first = self.lines[(*path, key)]
                raise self.error(f"has the key {key!r} twice, first on line {first}", event)
            self.add(1, event)
            built[key] = self.value(next(self.events), (*path, key))
            self.lines[(*path, key)] = _line(event)
        return built


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _scalar(text: str) -> Any:
    """A plain (unquoted) scalar as YAML 1.2's core schema reads it."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > 100:
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
