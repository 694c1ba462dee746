"""How a reference trajectory is reached with our names: one visible record a case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """A file of ``tests/golden`` and the call that must reproduce it.

    Args:
        optimizer: our name.
        rename: the reference's option name → ours; an option mapped to None is left out (say why in a comment).
        options: our options beside the reference's.
        rtol: largest relative error.
        departs: why our numbers are not the port's (the paper wins); the case is then checked to differ.
    """

    optimizer: str
    rename: Mapping[str, str | None] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    rtol: float = 1e-6
    departs: str = ""

    def call(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Our options for the reference's ``kwargs``."""
        renamed = {self.rename.get(key, key): value for key, value in kwargs.items()}
        return {**{key: value for key, value in renamed.items() if key is not None}, **self.options}
