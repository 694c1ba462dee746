"""What the registry knows of an optimizer before anything is imported."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

__all__ = ["OptimizerSpec", "Paper", "normalised"]


_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.<>]*")


def normalised(name: str) -> str:
    """A name as look-ups compare it: case does not matter, and ``-``, ``_`` and space are the same."""
    return name.strip().lower().replace("-", "_").replace(" ", "_")


@dataclass(frozen=True)
class Paper:
    """Where an optimizer was published.

    Args:
        title: the paper's title.
        year: of publication.
        arxiv: identifier such as ``"1412.6980"``, if there is one.
        doi: identifier such as ``"10.1162/neco.1998.10.2.251"``, if there is one.
    """

    title: str
    year: int
    arxiv: str | None = None
    doi: str | None = None

    @property
    def url(self) -> str | None:
        """A link to the paper."""
        if self.arxiv:
            return f"https://arxiv.org/abs/{self.arxiv}"
        return f"https://doi.org/{self.doi}" if self.doi else None


@dataclass(frozen=True)
class OptimizerSpec:
    """One line of a plugin's table.

    A ``ValueError`` says that a name or the target is malformed.

    Args:
        name: lower case, words joined by ``_``.
        target: where the class lives, ``"package.module:Class"``; imported on first use.
        family: the family that it is listed under.
        summary: one line.
        paper: its source.
        aliases: other names that people know.
        tags: properties to filter by.
    """

    name: str
    target: str
    family: str = ""
    summary: str = ""
    paper: Paper | None = None
    aliases: tuple[str, ...] = ()
    tags: frozenset[str] = field(default_factory=frozenset)

    def __init__(
        self,
        name: str,
        target: str,
        *,
        family: str = "",
        summary: str = "",
        paper: Paper | None = None,
        aliases: Iterable[str] = (),
        tags: Iterable[str] = (),
    ) -> None:
        values = {
            "name": name,
            "target": target,
            "family": family,
            "summary": summary,
            "paper": paper,
            "aliases": tuple(aliases),
            "tags": frozenset(tags),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)
        for label in (name, *self.aliases):
            if not isinstance(label, str) or not label.strip() or ":" in label:
                raise ValueError(f"optimizer {name!r}: {label!r} is no name; names are text without ':'")
        if not isinstance(target, str) or not _TARGET.fullmatch(target):
            raise ValueError(f"optimizer {name!r}: target {target!r} must read 'package.module:Class'")
