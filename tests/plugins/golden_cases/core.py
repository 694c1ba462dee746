"""sgd, adam, adamw, lion."""

from __future__ import annotations

from .case import Case

CASES = {
    "sgd": Case("sgd"),
    "sgd.momentum": Case("sgd"),
    "sgd.nesterov": Case("sgd"),
    "adam": Case("adam"),
    "adam.amsgrad": Case("adam"),
    "adam.l2": Case("adam"),
    "adam.maximize": Case("adam"),
    "adamw": Case("adamw"),
    "adamw.amsgrad": Case("adamw"),
    "lion": Case("lion"),
    # Theirs is a flag, ours a mode; the peak of the schedule is the learning rate itself.
    "cautious.lion": Case("lion", {"caution": "cautious", "foreach": None}),
    "lion.fully_decoupled": Case("lion", {"decoupled_weight_decay": None}, {"decay_mode": "independent"}),
}
