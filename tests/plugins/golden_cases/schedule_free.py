"""The schedule-free optimizers; their references also give the weights in eval mode."""

from __future__ import annotations

from .case import Case

FOREACH = {"foreach": None}  # theirs picks an implementation; ours is tested in every engine

CASES = {name: Case(name, FOREACH) for name in ("schedule_free_sgd", "schedule_free_adamw", "schedule_free_radam")}
