"""prodigy, the D-adaptations, DoG."""

from __future__ import annotations

from .case import Case

DECOUPLE = {"decouple": None}  # theirs is a bool; ours is decay_mode

CASES = {
    "prodigy": Case("prodigy"),
    "prodigy.safeguard": Case("prodigy"),
    "dadapt_adam": Case("dadapt_adam", DECOUPLE, {"decay_mode": "decoupled"}),
    "dadapt_sgd": Case("dadapt_sgd"),
    "dadapt_adagrad": Case("dadapt_adagrad"),
    "dadapt_lion": Case("dadapt_lion"),
    "dadapt_adan": Case("dadapt_adan"),
    "dog": Case("dog"),
    "ldog": Case("ldog"),
}
