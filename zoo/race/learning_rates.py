"""Learning rates and options that a race uses where none are given.

The rates were found with ``python -m zoo.race.tuning``, on a grid of two a decade, by held-out loss and with other seeds
than a race's default: in ``DIGITS`` after 400 steps, over three seeds; in ``SOURCE`` after 300 steps, with one. As the
held-out data chose them, a race's held-out losses flatter the tuned optimizers a little. An optimizer that is not listed
was not tuned, or did best with its own default, which it races with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["DIGITS", "OPTIONS", "SOURCE"]

OPTIONS: Mapping[str, Mapping[str, Any]] = {"sgd": {"momentum": 0.9}}
"""Options beside the learning rate: SGD races as it is used for networks, with momentum."""

DIGITS: Mapping[str, float] = {
    "adam": 0.01,  # held-out loss 0.0640; 0.1143 at its own default
    "adamw": 0.01,  # 0.0576; 0.1145
    "lion": 3e-4,  # 0.1889; 1.3044
    "schedule_free_adamw": 0.01,  # 0.0905; 0.1070
    "schedule_free_radam": 0.03,  # 0.0875; 0.1617
    "sgd": 0.1,  # 0.0785; 1.9768
    "sophia_g": 1e-3,  # 0.0815; 1.2659
    "sophia_h": 1e-3,  # 0.0728; 0.0950
}
"""For the task digits."""

SOURCE: Mapping[str, float] = {
    "lion": 3e-4,  # held-out loss 2.2331; 2.5336 at its own default
    "sgd": 0.1,  # 2.3252; 2.7472
}
"""For the task source; adam and adamw do best with their own default there."""
