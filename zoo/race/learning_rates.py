"""Learning rates that a race uses where none is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["DIGITS", "OPTIONS", "SOURCE"]

OPTIONS: Mapping[str, Mapping[str, Any]] = {"sgd": {"momentum": 0.9}}

DIGITS: Mapping[str, float] = {"sgd": 0.1, "adam": 3e-3, "adamw": 3e-3, "lion": 1e-3}
SOURCE: Mapping[str, float] = {"sgd": 0.3, "adam": 3e-3, "adamw": 3e-3, "lion": 3e-4}
