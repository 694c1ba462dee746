"""Errors of the registry."""

from __future__ import annotations

__all__ = ["UnknownOptimizerError"]


class UnknownOptimizerError(KeyError, ValueError):
    """No optimizer has this name. Both a ``KeyError`` (a look-up failed) and a ``ValueError`` (an argument is wrong)."""

    def __init__(self, name: str, closest: list[str]) -> None:
        super().__init__(name)
        self.name = name
        self.closest = closest

    def __str__(self) -> str:
        hint = f"; closest: {', '.join(self.closest)}" if self.closest else ""
        return f"unknown optimizer {self.name!r}{hint}. zoo.list_optimizers() or `zoo list` names them all"
