"""Errors of the registry."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "AmbiguousOptimizerError",
    "ParameterGroupError",
    "PluginError",
    "RegistryFileError",
    "UnknownOptimizerError",
]


class UnknownOptimizerError(KeyError, ValueError):
    """No optimizer has this name. Both a ``KeyError`` (a look-up failed) and a ``ValueError`` (an argument is wrong).

    Args:
        name: what was asked for.
        closest: the names nearest to it.
        broken: plugins that could not be loaded, and might have had it.
        note: who asked for it, or why it is not to be had.
    """

    def __init__(self, name: str, closest: Sequence[str], broken: Sequence[str] = (), note: str = "") -> None:
        super().__init__(name)
        self.name = name
        self.note = note
        self.closest = list(closest)
        self.broken = list(broken)

    def __str__(self) -> str:
        hint = f"; closest: {', '.join(self.closest)}" if self.closest else ""
        text = f"unknown optimizer {self.name!r}{self.note}{hint}. zoo.list_optimizers() or `zoo list` names them all"
        if self.broken:
            text += f"; plugins that could not be loaded (`zoo doctor` says why): {', '.join(self.broken)}"
        return text


class AmbiguousOptimizerError(ValueError):
    """Several distributions bring an optimizer of this name; no order of import decides, the caller does."""

    def __init__(self, name: str, owners: Sequence[str]) -> None:
        qualified = ", ".join(f"{owner}:{name}" for owner in owners)
        super().__init__(f"optimizer {name!r} is in {len(owners)} distributions; ask for one of: {qualified}")
        self.name = name
        self.owners = list(owners)


class PluginError(RuntimeError):
    """A plugin's optimizer can't be used: the plugin, its distribution and the cause are named."""


class RegistryFileError(ValueError):
    """A registry file, or a mapping in its place, says something that can't be done.

    Args:
        source: the file, or what stands in its place.
        problem: what is wrong and what to do.
        line: where, counted from 1, if it is known.
    """

    def __init__(self, source: str, problem: str, line: int | None = None) -> None:
        place = source if line is None else f"{source}:{line}"
        super().__init__(f"{place}: {problem}")
        self.source = source
        self.problem = problem
        self.line = line


class ParameterGroupError(ValueError):
    """Rules for parameter groups do not fit the parameters: the rule and the parameters are named."""
