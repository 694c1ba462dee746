"""Errors of the registry."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["AmbiguousOptimizerError", "PluginError", "UnknownOptimizerError"]


class UnknownOptimizerError(KeyError, ValueError):
    """No optimizer has this name. Both a ``KeyError`` (a look-up failed) and a ``ValueError`` (an argument is wrong).

    Args:
        name: what was asked for.
        closest: the names nearest to it.
        broken: plugins that could not be loaded, and might have had it.
    """

    def __init__(self, name: str, closest: Sequence[str], broken: Sequence[str] = ()) -> None:
        super().__init__(name)
        self.name = name
        self.closest = list(closest)
        self.broken = list(broken)

    def __str__(self) -> str:
        hint = f"; closest: {', '.join(self.closest)}" if self.closest else ""
        text = f"unknown optimizer {self.name!r}{hint}. zoo.list_optimizers() or `zoo list` names them all"
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
