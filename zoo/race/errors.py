"""The error of a race that can't be run as asked."""

from __future__ import annotations

__all__ = ["RaceError"]


class RaceError(ValueError):
    """A race can't be run as asked: the message says why and what to do."""
