"""The table of all helpers, from their own signatures and docstrings."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["HelperRow", "helper_table"]


class HelperRow(NamedTuple):
    """One helper."""

    name: str
    signature: str
    summary: str
    """The first paragraph of its docstring, on one line."""


class _Bare(str):
    """An annotation that prints without quotes."""

    def __repr__(self) -> str:
        return str(self)


def helper_table() -> Iterator[HelperRow]:
    """A row for every function that ``zoo.helpers`` exports, by name."""
    package = importlib.import_module(__name__.rpartition(".")[0])
    for name in sorted(package.__all__):
        function = getattr(package, name)
        if inspect.isfunction(function):
            paragraph = (inspect.getdoc(function) or "").split("\n\n")[0]
            yield HelperRow(name, f"{name}{_bare_signature(function)}", " ".join(paragraph.split()))


def _bare_signature(function: object) -> inspect.Signature:
    signature = inspect.signature(function)  # type: ignore[arg-type]
    parameters = [p.replace(annotation=_Bare(p.annotation)) for p in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=_Bare(signature.return_annotation))
